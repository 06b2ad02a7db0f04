// src/training/distributed_training_controller.h
//
// The controller of DistributedTraining (ml.example.com/v1): finds a training's children in the
// informers and hands them to distributed_training.h.
//
// Thread:     the loop thread (see client/reconcile.h).

#pragma once

#include "client/reconcile.h"

namespace muster::training {

class DistributedTrainingController final : public client::Controller {
 public:
  std::string_view name() const override { return "distributedtraining-controller"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;
};

}  // namespace muster::training
