// src/controllers/job/job_pods.h
//
// The pods of a Job. Each bears a finalizer until the Job's status has counted it: it cannot vanish
// before that.
//
// Thread: any (pure functions).

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "client/reconcile.h"
#include "controllers/job/job_facts.h"
#include "json/projection.h"
#include "json/value.h"

namespace muster::controllers {

inline constexpr char kTrackingFinalizer[] = "batch.kubernetes.io/job-tracking";

// The fields that this folder reads of a pod.
const json::Fields& JobPodFields();

bool IsTracked(const json::Value& pod);
bool IsTerminating(const json::Value& pod);  // on its way out, not over yet
bool HasSucceeded(const json::Value& pod);
// A pod that goes without an end of its own counts as failed, unless the Job waits for it.
bool HasFailed(const json::Value& pod, const JobSpec& spec);
std::optional<int64_t> CompletionIndexOf(const json::Value& pod);
// When it ended, or the best that is known of it. Source: getFinishedTime in k8s.io/kubernetes
// pkg/controller/job/backoff_utils.go.
Time FinishedAt(const json::Value& pod);

// Earlier failures of the pod's index, as the pod's annotations have them.
struct IndexFailures {
  int64_t counted = 0, ignored = 0;
  int64_t total() const { return counted + ignored; }
};
IndexFailures IndexFailuresOf(const json::Value& pod);

// Takes the finalizer away, if the pod is still as it was seen.
void StopTracking(const json::Value& pod, client::Reconciled& out);

// What PodNames (controllers/pods/pod_template.h) starts the name of an index's pod with: the Job's
// name, cut short if need be, and the index.
std::string IndexedNameBase(std::string_view job_name, int64_t index);

// A pod of the Job, of an index or of none. `failures`: of the index, if spec.backoffLimitPerIndex
// limits them.
json::Value NewJobPod(const json::Value& job, std::optional<int64_t> index,
                      std::optional<IndexFailures> failures, std::string name);

}  // namespace muster::controllers
