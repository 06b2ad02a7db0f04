// src/controllers/deployment/deployment_status.h
//
// What a Deployment says about itself: counts, and the conditions Available, Progressing and
// ReplicaFailure. Source: k8s.io/kubernetes pkg/controller/deployment/{sync,progress}.go.
//
// Thread: any (pure functions).

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "controllers/deployment/replica_sets.h"
#include "json/value.h"

namespace muster::controllers {

struct DeploymentCondition {
  std::string_view type, status, reason;
  std::string message;
};

// With the condition in the place of an older one of its type; unchanged if that one has the same
// status and reason.
json::Value WithDeploymentCondition(const json::Value& status, const DeploymentCondition& condition,
                                    Time now);

// Counts and Available. `all`: every ReplicaSet of the Deployment; `newest`: of the present
// template, null if there is none.
json::Value CountReplicas(const json::Value& deployment, const DeploymentSpec& spec,
                          const json::Value& status, const std::vector<ReplicaSetView*>& all,
                          const ReplicaSetView* newest, Time now);

// All replicas are of the present template, and available.
bool IsComplete(const DeploymentSpec& spec, const json::Value& deployment,
                const json::Value& status);

// Progressing and ReplicaFailure, from what has changed between the stored status and `status`.
json::Value JudgeProgress(const json::Value& deployment, const DeploymentSpec& spec,
                          json::Value status, const std::vector<ReplicaSetView*>& all,
                          const ReplicaSetView* newest, Time now);

// When a rollout that does not move is to be looked at again.
std::optional<Time> ProgressDue(const json::Value& deployment, const DeploymentSpec& spec,
                                const json::Value& status);

// Progressing while the Deployment is paused; the status as it is if nothing changes.
json::Value JudgePause(const DeploymentSpec& spec, const json::Value& status, Time now);

}  // namespace muster::controllers
