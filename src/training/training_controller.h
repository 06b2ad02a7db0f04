// src/training/training_controller.h
//
// The controller of one kind of training job (PyTorchJob, TFJob, ...): finds a job's children in
// the informers and hands them to job_pass.h.
//
// Thread:     the loop thread (see client/reconcile.h).
// Invariants: pure but for one thing: the key of an MPIJob's Secret is random, because nobody may
//             be able to work it out.

#pragma once

#include <string>

#include "client/reconcile.h"
#include "schema/training_kinds.h"

namespace muster::training {

class TrainingController final : public client::Controller {
 public:
  explicit TrainingController(const schema::TrainingKind& kind);
  std::string_view name() const override { return name_; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;

 private:
  const schema::TrainingKind& kind_;
  const client::Resource resource_;
  const std::string name_;  // "pytorchjob-controller"
};

}  // namespace muster::training
