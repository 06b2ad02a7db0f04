// src/training/pytorchjob_controller.h
//
// The controller of PyTorchJob: finds a job's children in the informers and hands them to
// job_pass.h.
//
// Thread:     the loop thread (see client/reconcile.h).

#pragma once

#include "client/reconcile.h"

namespace muster::training {

class PyTorchJobController final : public client::Controller {
 public:
  std::string_view name() const override { return "pytorchjob-controller"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;
};

}  // namespace muster::training
