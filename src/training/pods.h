// src/training/pods.h
//
// What a training job is made of: one pod and one headless service per replica, and one PodGroup
// for all.
//
// Thread:     any (pure).

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "json/value.h"
#include "training/job.h"

namespace muster::training {

// The restart that the pod belongs to; see restarts.h.
inline constexpr std::string_view kEpochAnnotation = "training.muster.dev/epoch";
// How many pods the job had when this one was made: a scaled job is told from one that lost a
// member.
inline constexpr std::string_view kMembersAnnotation = "training.muster.dev/members";

// The labels that pods, services and selectors share.
json::Value LabelsOf(const Job& job, const Replica& replica, int64_t index);
// "training.kubeflow.org/job-name=j,...": all pods of one type, sorted by key.
std::string SelectorOf(const Job& job, const Replica& replica);
json::Value OwnerReferencesTo(const Job& job);

json::Value MakePod(const Job& job, const Replica& replica, int64_t index, int64_t epoch);
// Its name resolves as soon as the pod has an address, ready or not: ranks look for each other
// before they are ready.
json::Value MakeService(const Job& job, const Replica& replica, int64_t index);
// Scales the workers of an elastic job by its metrics. REQUIRES: job.elastic->metrics.
json::Value MakeAutoscaler(const Job& job);
json::Value MakePodGroup(const Job& job);
// The part of a PodGroup that follows the job.
json::Value PodGroupSpec(const Job& job);

// What a pod of ours says about itself; nullopt for a pod that has lost its labels.
struct ReplicaId {
  std::string lower_type;
  int64_t index = 0;
};
std::optional<ReplicaId> ReplicaOfPod(const json::Value& pod);
int64_t EpochOf(const json::Value& pod);

}  // namespace muster::training
