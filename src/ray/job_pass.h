// src/ray/job_pass.h
//
// One pass over one RayJob. Pure. `status.jobDeploymentStatus`:
//
//   "" -> Initializing (a cluster is made) -> Running (the command is submitted)
//      -> Complete | Failed
//   Failed with tries left -> Retrying (the cluster goes) -> ""
//   suspend: Suspending (cluster and submitter go) -> Suspended -> ""
//   ValidationFailed: it cannot be run as it is
//
// What Ray says of the job is asked of the dashboard, every kJobPeriod while it runs.
//
// Thread:     any.
// Invariants: no state waits for ever for what cannot come (kuberay#3903, #1489, #4217): a
//             submitter that failed, a job that the cluster lost, a cluster that is gone end it as
//             Failed; the names of cluster and submission are in the status before either is made,
//             so a crash makes no second one.

#pragma once

#include "base/time.h"
#include "client/reconcile.h"
#include "json/value.h"

namespace muster::ray {

inline constexpr Duration kJobPeriod = seconds(2);
// After Ray says that the job has ended, so long is waited for the submitter to show the rest of
// its log.
inline constexpr Duration kMaxLogPatience = seconds(30);

struct JobChildren {
  json::Value cluster;    // of status.rayClusterName; null if there is none
  json::Value submitter;  // a batch/v1 Job of the RayJob's name; null if there is none
};

client::Reconciled ReconcileJob(const json::Value& ray_job, const JobChildren& children,
                                const client::Observations& observations, Time now, uint64_t seed);

}  // namespace muster::ray
