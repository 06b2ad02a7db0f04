// src/controllers/disruption/disruption_controller.h
//
// Keeps the status of every PodDisruptionBudget (budget.h), which evictions and the scheduler's
// preemption go by.
//
// Thread: the loop thread (see client/reconcile.h).

#pragma once

#include <string>
#include <vector>

#include "client/reconcile.h"

namespace muster::controllers {

class DisruptionController final : public client::Controller {
 public:
  std::string_view name() const override { return "disruption-controller"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;
};

}  // namespace muster::controllers
