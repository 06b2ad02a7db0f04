// src/ray/cluster_pass.h
//
// One pass over one RayCluster: from the cluster and its children to the writes that bring it
// nearer to its spec. Pure.
//
//   suspended? remove all children
//   otherwise  a PodGroup, the head's Service, the autoscaler's account, one head, and each group's
//              workers; pods that ended are deleted and made anew
//
// While the autoscaler runs it alone says which workers go: those in workersToDelete are deleted
// whatever replicas says, and none is chosen here. Without it, surplus workers go in the order of
// controllers/pods/pod_facts.h.
//
// Thread:     any.
// Invariants: a name in workersToDelete is not given again, so a list that is stale kills nobody
//             (kuberay#3738); a second head is made only when the first is gone.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/time.h"
#include "client/reconcile.h"
#include "json/projection.h"
#include "json/value.h"
#include "ray/cluster.h"

namespace muster::ray {

// Pods that one pass makes; the next one goes on.
inline constexpr size_t kMaxNewPodsPerPass = 500;

struct ClusterChildren {
  std::vector<json::Value> pods;               // controlled by the cluster
  json::Value head_service;                    // of the name, null if there is none
  json::Value pod_group;                       // ...
  std::map<std::string, json::Value> account;  // of the autoscaler, by resource
  json::Value refused;                         // client::kRefusedWrite
};

// What ReconcileCluster reads of a pod, besides identity fields.
const json::Fields& ClusterPodFields();

client::Reconciled ReconcileCluster(const Cluster& cluster, const ClusterChildren& children,
                                    Time now, uint64_t seed);

}  // namespace muster::ray
