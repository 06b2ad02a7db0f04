// src/apiserver/aggregation/api_service.h
//
// ApiService: an APIService whose requests go to a Service, read once.
//
// Life cycle: an immutable value; a request that is under way holds the one that it began with.
// Thread:     any (pure).

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "json/value.h"

namespace muster::apiserver {

struct ApiService {
  std::string name, group, version;
  std::string service_ns, service_name;
  int64_t port = 0;
  std::string ca_pem;         // "": the system's authorities
  bool believes_all = false;  // insecureSkipTLSVerify
  int64_t group_priority = 0, version_priority = 0;
  bool available = false;  // what its condition says

  // The name of the Service that its certificate must carry.
  std::string Host() const;
  std::string GroupVersion() const { return group + "/" + version; }
  // Asked of it about itself: "/apis/custom.metrics.k8s.io/v1beta2".
  std::string DiscoveryPath() const { return "/apis/" + GroupVersion(); }
  // Reached and believed in the same way.
  bool SameSpec(const ApiService& other) const;
};
using ApiServicePtr = std::shared_ptr<const ApiService>;

inline constexpr std::string_view kAvailable = "Available";  // the type of the condition

// nullptr for one that this server answers itself.
ApiServicePtr ReadApiService(const json::Value& object);

// The condition of this type; null without.
json::Value ConditionOf(const json::Value& object, std::string_view type);

}  // namespace muster::apiserver
