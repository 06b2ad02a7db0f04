// src/controllers/job/job_controller.h
//
// Runs every Job (job_pass.h), adopts and releases pods as its selector says
// (controllers/pods/ownership.h), and deletes it when it has been over for
// spec.ttlSecondsAfterFinished.
//
// Thread:     the loop thread (see client/reconcile.h).
// Invariants: names of pods depend on the Job's UID and on the pods that there are alone; a Job
//             that names another manager is left alone, but for its time to live.

#pragma once

#include <string_view>
#include <vector>

#include "client/reconcile.h"

namespace muster::controllers {

class JobController final : public client::Controller {
 public:
  std::string_view name() const override { return "job-controller"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;
};

}  // namespace muster::controllers
