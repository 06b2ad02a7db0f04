// src/agent/pod_workers/pod_inputs.h
//
// PodInputs: the API objects besides itself that a pod needs before it can start, and what the node
// knows of it.
//
// Thread: any (values).

#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "agent/volumes/claim_volume.h"
#include "base/status.h"
#include "base/time.h"
#include "json/value.h"

namespace muster::agent {

// What a serviceAccountToken source asks for; equal ones of a pod share a token.
struct TokenNeed {
  std::string audience;  // "": the API server's own
  int64_t expiration_seconds = 3600;
  auto operator<=>(const TokenNeed&) const = default;
};

struct ServiceAccountToken {
  std::string token;
  Time expires{};
  Time refresh_at{};  // at 80 % of its life, or after 24 hours
};

struct PodInputs {
  std::map<std::string, json::Value>
      config_maps;  // of the pod's namespace; absent ones are left out
  std::map<std::string, json::Value> secrets;
  std::map<TokenNeed, Result<ServiceAccountToken>> tokens;
  std::map<std::string, Result<ClaimVolume>> claims;  // by the volume's name in the pod
  std::vector<json::Value> services;  // of the pod's namespace, and default/kubernetes
};

// What fieldRef and resourceFieldRef may read.
struct PodFacts {
  std::string pod_ip, host_ip, node_name;
  json::Value
      node_allocatable;  // {"cpu": "2", "memory": "8Gi"}: the limit of a container that has none
};

struct NeededObjects {
  std::set<std::string> config_maps, secrets;
  std::set<TokenNeed> tokens;
};

// REQUIRES: `source` is a serviceAccountToken source.
TokenNeed TokenNeedOf(const json::Value& source);

// Every ConfigMap and Secret that the pod names in environment, volumes or imagePullSecrets,
// optional ones included; and the tokens of its projected volumes.
NeededObjects FindNeededObjects(const json::Value& pod);

// Init containers, then containers.
std::vector<json::Value> AllContainers(const json::Value& pod);

}  // namespace muster::agent
