// src/controllers/job/job_pass.h
//
// One pass over a Job that is not over: its pods, what of them counts, its status. Source:
// k8s.io/kubernetes pkg/controller/job, with the feature gates of 1.32.
//
// A pod counts exactly once, whatever crashes when: it bears a finalizer until it is counted. First
// the status takes its UID into uncountedTerminatedPods (or its index into completedIndexes), then
// the finalizer goes, then the UID turns into a number. Each step follows from what the server
// holds, and a status written from a stale cache is refused.
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

// Upstream's bounds of one pass: UIDs that the status holds, and pods made or deleted.
inline constexpr size_t kMaxUncountedPods = 500;
inline constexpr size_t kMaxPodChangesPerPass = 500;

struct JobInput {
  json::Value job;
  std::vector<json::Value> pods;  // its own, also those that are over or on their way out
  std::function<bool(const std::string& name)> is_taken;  // a pod has the name
  uint64_t seed = 0;
};

// Adds to `out`.
void ReconcileJob(const JobInput& input, Time now, client::Reconciled& out);

}  // namespace muster::controllers
