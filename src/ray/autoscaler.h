// src/ray/autoscaler.h
//
// Ray's own autoscaler: a container beside the head that reads the RayCluster and its pods and
// patches replicas and workersToDelete, with an account of its own that may do just that. Contract:
// kuberay controllers/ray/common/{pod,rbac}.go; its requests are in Ray's
// autoscaler/_private/kuberay/node_provider.py.
//
// Thread:     any (pure functions).

#pragma once

#include <vector>

#include "client/api_client.h"
#include "json/value.h"
#include "ray/cluster.h"

namespace muster::ray {

bool IsAutoscalerV2(const Cluster& cluster);

// The head's pod spec with the container, the account and a folder of logs that both see.
json::Value WithAutoscaler(const Cluster& cluster, json::Value head_spec);

// ServiceAccount (unless the head's template names one), Role and RoleBinding.
struct AccountObject {
  client::Resource resource;
  json::Value object;
};
std::vector<AccountObject> AutoscalerAccount(const Cluster& cluster);

}  // namespace muster::ray
