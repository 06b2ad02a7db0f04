// src/apiserver/discovery/discovery.h
//
// Discovery documents: what is served, for clients' REST mappers. /api, /apis, /apis/G, /api/v1,
// /apis/G/V, and the aggregated form (apidiscovery.k8s.io v2 and v2beta1) of the first two.
//
// Life cycle: a member of the server; documents are kept until the registry or an
//             APIService changes.
// Thread:     the loop thread.

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apiserver/aggregation/aggregator.h"
#include "apiserver/call.h"
#include "apiserver/resource_registry.h"
#include "json/value.h"

namespace muster::apiserver {

class Discovery {
 public:
  // `server_address`: "10.0.0.1:6443", told to clients of /api; may be "".
  // REQUIRES: `registry` and `aggregator` outlive it.
  Discovery(const ResourceRegistry& registry, const Aggregator& aggregator,
            std::string server_address);

  // Answers if the path is one of the above; false otherwise.
  bool Handle(Call& call);

 private:
  // One version of a group; `service`: who serves it, nullptr: this server.
  struct ServedVersion {
    std::string version;
    int64_t priority = 0;
    ApiServicePtr service;
  };
  using Revisions = std::pair<uint64_t, uint64_t>;

  // The preferred one first.
  std::vector<ServedVersion> VersionsOf(std::string_view group) const;
  std::vector<std::string> Groups() const;
  json::Value GroupObject(const std::string& group, bool with_type) const;
  json::Value AggregatedVersion(const std::string& group, const ServedVersion& served) const;
  void Reply(Call& call, const std::string& key,
             json::Value (Discovery::*make)(std::string_view) const, std::string_view argument,
             std::string_view content_type = "application/json");
  json::Value CoreVersions(std::string_view) const;
  json::Value GroupList(std::string_view) const;
  json::Value Group(std::string_view group) const;
  json::Value ResourceList(std::string_view group_version) const;
  // `which`: "api/v2", "apis/v2beta1", ...
  json::Value Aggregated(std::string_view which) const;

  const ResourceRegistry& registry_;
  const Aggregator& aggregator_;
  std::string server_address_;
  Revisions revisions_;  // of the registry and the aggregator that the documents below describe
  std::map<std::string, std::string> documents_;
};

// Kubernetes' order of versions: v2, v1, v1beta2, v1beta1, v1alpha1, anything else.
bool VersionBefore(std::string_view a, std::string_view b);

}  // namespace muster::apiserver
