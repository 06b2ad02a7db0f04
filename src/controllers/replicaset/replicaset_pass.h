// src/controllers/replicaset/replicaset_pass.h
//
// One pass over a ReplicaSet: as many pods as it asks for, and its status. Source:
// k8s.io/kubernetes pkg/controller/replicaset.
//
// Thread: any (pure functions).

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/time.h"
#include "client/reconcile.h"
#include "json/value.h"

namespace muster::controllers {

struct ReplicaSetInput {
  json::Value replica_set;
  std::vector<json::Value> pods;  // its own, also those that are over or on their way out
  // Those of all ReplicaSets of its owner, by which the fullest nodes are known.
  std::vector<json::Value> related_pods;
  std::function<bool(const std::string& name)> is_taken;  // a pod has the name
  json::Value refused;                                    // client::kRefusedWrite
  uint64_t seed = 0;
};

// Adds to `out`.
void ReconcileReplicaSet(const ReplicaSetInput& input, Time now, client::Reconciled& out);

// What its status should be, given that its pods are `pods`.
json::Value ReplicaSetStatus(const ReplicaSetInput& input, Time now);

}  // namespace muster::controllers
