// src/controllers/deployment/rollout.h
//
// One pass over a Deployment: makes the ReplicaSet of the present template, moves replicas from the
// old ones to it within maxSurge and maxUnavailable, or all at once with Recreate, keeps so many
// old ones as the history wants, and says how it stands. Source: k8s.io/kubernetes
// pkg/controller/deployment.
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

struct DeploymentInput {
  json::Value deployment;
  std::vector<json::Value> replica_sets;  // its own
  // A ReplicaSet of that name is there, whosever it is.
  std::function<bool(const std::string& name)> is_taken;
  // Pods of it that are not over; for Recreate.
  std::function<bool(const json::Value& replica_set)> has_pods;
};

// Adds to `out`.
void ReconcileDeployment(const DeploymentInput& input, Time now, client::Reconciled& out);

}  // namespace muster::controllers
