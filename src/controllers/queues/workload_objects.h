// src/controllers/queues/workload_objects.h
//
// Workloads (kueue.x-k8s.io): how a queue sees a job, made from jobs of all kinds that wait in
// queues. Names, reasons and messages: kueue pkg/controller/jobframework and pkg/workload.
//
// Thread: any (pure functions).

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "client/reconcile.h"
#include "json/value.h"
#include "schema/queued_kinds.h"

namespace muster::controllers {

inline const client::Resource kWorkloads{"kueue.x-k8s.io", "v1beta1", "workloads"};
inline const client::Resource kLocalQueues{"kueue.x-k8s.io", "v1beta1", "localqueues"};
inline const client::Resource kClusterQueues{"kueue.x-k8s.io", "v1beta1", "clusterqueues"};
inline const client::Resource kResourceFlavors{"kueue.x-k8s.io", "v1beta1", "resourceflavors"};
inline const client::Resource kWorkloadPriorityClasses{"kueue.x-k8s.io", "v1beta1",
                                                       "workloadpriorityclasses"};

inline constexpr std::string_view kQuotaReserved = "QuotaReserved";
inline constexpr std::string_view kAdmitted = "Admitted";
inline constexpr std::string_view kEvicted = "Evicted";
inline constexpr std::string_view kFinished = "Finished";
inline constexpr std::string_view kActive = "Active";

// Keeps a workload, and with it its quota, until no pod of its job is left; a ClusterQueue until
// nobody has quota of it; a ResourceFlavor until no ClusterQueue names it.
inline constexpr std::string_view kResourceInUse = "kueue.x-k8s.io/resource-in-use";
inline constexpr std::string_view kJobUidLabel = "kueue.x-k8s.io/job-uid";

client::Resource ResourceOf(const schema::QueuedKind& kind);

// Upstream's Kueue is installed, whose definitions say so: then the queues are its own. Its user
// calls FollowDefinitions() in Setup().
void FollowDefinitions(client::InformerSet& informers);
bool AreManagedElsewhere(const client::View& view);

// "job-train-1a2b3": its kind, its name, and five digits of a hash of both and of its UID.
std::string WorkloadName(const schema::QueuedKind& kind, const json::Value& job);

// The pods that the job makes at a time, in sets of equal ones: Workload.spec.podSets.
json::Value PodSetsOf(const schema::QueuedKind& kind, const json::Value& job);
// The job with nodeSelector and tolerations of each set of pods as in `pod_sets`.
json::Value WithPlacement(const schema::QueuedKind& kind, const json::Value& job,
                          const json::Value& pod_sets);

struct WorkloadPriority {
  int64_t value = 0;
  std::string class_name, source;
};
json::Value MakeWorkload(const schema::QueuedKind& kind, const json::Value& job,
                         const WorkloadPriority& priority);

struct WorkloadEnd {
  std::string_view reason;  // Succeeded or Failed
  std::string message;
};
// nullopt while it is not over.
std::optional<WorkloadEnd> EndOf(const schema::QueuedKind& kind, const json::Value& job);

bool Holds(const json::Value& object, std::string_view condition);
// `status` with the condition; the same value if it says so already. Messages are cut at 32 KiB.
json::Value WithCondition(const json::Value& status, std::string_view type, bool holds,
                          std::string_view reason, std::string message, int64_t generation,
                          Time now);

}  // namespace muster::controllers
