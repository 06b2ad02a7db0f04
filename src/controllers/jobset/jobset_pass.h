// src/controllers/jobset/jobset_pass.h
//
// One pass over a JobSet: its Jobs, its Service, its status. Source: kubernetes-sigs/jobset
// pkg/controllers.
//
//   over?      end what still runs, delete it when its time has come
//   otherwise  delete the Jobs of former attempts; a Job failed: begin anew or fail; enough
//              succeeded: done; else make, suspend or resume Jobs in their order
//
// Beginning anew is one conditional write of status.restarts: Jobs bear the number of their
// attempt, so those that are of former ones follow from it, and no failure counts twice, whatever
// crashes when.
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

// Of one pass; the next one goes on.
inline constexpr size_t kMaxJobsPerJobSetPass = 500;
// Something of others that has the name of ours is looked for again after that.
inline constexpr Duration kTakenNameRetry = seconds(30);

struct JobSetInput {
  json::Value job_set;
  std::vector<json::Value> jobs;                          // that it controls
  std::function<bool(const std::string& name)> is_taken;  // a Job has the name, anybody's
  std::function<const json::Value*(const std::string& name)> find_service;  // anybody's
  json::Value pod_group;       // that has the name of the JobSet; null if there is none
  int64_t succeeded_pods = 0;  // that are still there
};

// Adds to `out`.
void ReconcileJobSet(const JobSetInput& input, Time now, client::Reconciled& out);

}  // namespace muster::controllers
