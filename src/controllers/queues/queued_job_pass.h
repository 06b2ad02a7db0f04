// src/controllers/queues/queued_job_pass.h
//
// One pass over one job that waits in a queue, of any kind: it has a Workload, is suspended while
// that has no quota, and begins, on nodes of the flavor that it was given, when it has.
//
//   no Workload        suspend the job, make one
//   not admitted       keep it suspended
//   admitted           begin: resume it, with the flavor's labels and tolerations
//   other pods now     (scaled, changed): delete the Workload and queue anew
//   over               the Workload is finished
//
// Thread:     any (pure).
// Invariants: a reservation ends when no pod of the job is left that has not ended, and not before:
//             neither with the job nor with its Workload (a finalizer keeps that). So quota that is
//             free is free on the nodes, too.

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/time.h"
#include "client/reconcile.h"
#include "controllers/queues/workload_objects.h"
#include "json/value.h"
#include "schema/queued_kinds.h"

namespace muster::controllers {

struct QueuedJobInput {
  const schema::QueuedKind* kind = nullptr;
  client::ObjectKey key;
  json::Value job;                     // null if there is none of the key any more
  std::vector<json::Value> workloads;  // of jobs of this key, former ones too
  // Whether pods of the job with this UID are left that have not ended.
  std::function<bool(const std::string& uid)> has_pods;
  std::function<const json::Value*(const std::string& name)> find_flavor;
  WorkloadPriority priority;
  // A whole pod is only asked for when it is needed: its informer keeps less.
  bool job_is_whole = true;
};

// What is asked for, where the job is not whole.
inline constexpr const char* kWholeObject = "whole";

client::Reconciled ReconcileQueuedJob(const QueuedJobInput& input, Time now);

}  // namespace muster::controllers
