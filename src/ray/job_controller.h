// src/ray/job_controller.h
//
// The controller of RayJobs: finds a job's cluster and submitter in the informers and hands them to
// job_pass.h.
//
// Thread:     the loop thread (see client/reconcile.h).

#pragma once

#include <string_view>
#include <vector>

#include "client/reconcile.h"

namespace muster::ray {

class JobController final : public client::Controller {
 public:
  std::string_view name() const override { return "rayjob-controller"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;
};

}  // namespace muster::ray
