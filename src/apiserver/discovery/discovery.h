// src/apiserver/discovery/discovery.h
//
// Discovery documents: what is served, for clients' REST mappers. /api, /apis, /apis/G, /api/v1,
// /apis/G/V, and the aggregated form (apidiscovery.k8s.io v2 and v2beta1) of the first two.
//
// Life cycle: a member of the server; documents are kept until the registry changes.
// Thread:     the loop thread.

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "apiserver/call.h"
#include "apiserver/resource_registry.h"
#include "json/value.h"

namespace muster::apiserver {

class Discovery {
 public:
  // `server_address`: "10.0.0.1:6443", told to clients of /api; may be "".
  Discovery(const ResourceRegistry& registry, std::string server_address);

  // Answers if the path is one of the above; false otherwise.
  bool Handle(Call& call);

 private:
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
  std::string server_address_;
  uint64_t revision_ = 0;  // of the registry that the documents below describe
  std::map<std::string, std::string> documents_;
};

// Kubernetes' order of versions: v2, v1, v1beta2, v1beta1, v1alpha1, anything else.
bool VersionBefore(std::string_view a, std::string_view b);

}  // namespace muster::apiserver
