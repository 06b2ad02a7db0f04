// src/controllers/deployment/replica_sets.h
//
// The ReplicaSets of a Deployment as one pass sees and changes them: which one is of the present
// template, their sizes, revisions and annotations. Source: k8s.io/kubernetes
// pkg/controller/deployment/util/deployment_util.go.
//
// Thread: any (pure functions; values of one pass).

#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"

namespace muster::controllers {

inline constexpr std::string_view kRevisionAnnotation = "deployment.kubernetes.io/revision";
inline constexpr std::string_view kRevisionHistoryAnnotation =
    "deployment.kubernetes.io/revision-history";
inline constexpr std::string_view kDesiredReplicasAnnotation =
    "deployment.kubernetes.io/desired-replicas";
inline constexpr std::string_view kMaxReplicasAnnotation = "deployment.kubernetes.io/max-replicas";
inline constexpr std::string_view kTemplateHashLabel = "pod-template-hash";

// What a Deployment asks for.
struct DeploymentSpec {
  explicit DeploymentSpec(const json::Value& deployment);
  int64_t replicas = 1;
  bool recreate = false;
  bool paused = false;
  int64_t max_surge = 0, max_unavailable = 0;  // resolved: percentages of replicas
  int64_t min_ready_seconds = 0;
  int64_t revision_history_limit = -1;     // -1: no limit
  int64_t progress_deadline_seconds = -1;  // -1: no deadline
};

// One of them, with what the pass has changed so far.
struct ReplicaSetView {
  json::Value object;    // as it will be
  bool created = false;  // in this pass
  bool changed = false;  // its size or its annotations, in this pass

  int64_t replicas() const { return object["spec"]["replicas"].AsInt(); }
  int64_t available() const { return object["status"]["availableReplicas"].AsInt(); }
  // Available ones that stay: a status that is older than the last change of the size counts some
  // that are about to be ended.
  int64_t lasting() const { return std::min(available(), replicas()); }
  // The status was made after the last change of the size.
  bool IsUpToDate() const {
    return object["status"]["observedGeneration"].AsInt() >=
           object["metadata"]["generation"].AsInt();
  }
  std::string name() const { return object["metadata"]["name"].Str(); }
  std::string_view annotation(std::string_view key) const {
    return object["metadata"]["annotations"][key].AsString();
  }
  // 0 without a number.
  int64_t revision() const;
  void SetReplicas(int64_t replicas);
  // True if it differs from what was there.
  bool SetAnnotation(std::string_view key, std::string value);
  // desired-replicas and max-replicas.
  bool SetSizeAnnotations(const DeploymentSpec& spec);
};

// The template without its hash label is the Deployment's.
bool HasTemplateOf(const json::Value& replica_set, const json::Value& deployment);

// A ReplicaSet of the present template, without replicas. `hash`: TemplateHash().
json::Value NewReplicaSet(const json::Value& deployment, const std::string& hash);

// Gives it the Deployment's annotations and the revision, and keeps the one that it had before in
// its history. True if something changed.
bool SyncRevision(const json::Value& deployment, int64_t revision, ReplicaSetView& replica_set);

int64_t SumOfReplicas(const std::vector<ReplicaSetView*>& replica_sets);
int64_t SumOfAvailable(const std::vector<ReplicaSetView*>& replica_sets);
int64_t SumOfLasting(const std::vector<ReplicaSetView*>& replica_sets);
// Those with replicas.
std::vector<ReplicaSetView*> ActiveOf(const std::vector<ReplicaSetView*>& replica_sets);
// From old to new, by creation and name.
void SortByCreation(std::vector<ReplicaSetView*>& replica_sets);

// Sizes after a change of spec.replicas in the middle of a rollout: each ReplicaSet grows or
// shrinks in proportion to its size, what is left over goes to the largest.
void ScaleInProportion(const DeploymentSpec& spec, int64_t replicas_before,
                       std::vector<ReplicaSetView*> active);

}  // namespace muster::controllers
