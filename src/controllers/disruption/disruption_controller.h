// src/controllers/disruption/disruption_controller.h
//
// Keeps the status of every PodDisruptionBudget (budget.h), which evictions and the scheduler's
// preemption go by. Of a controller that is not of apps/v1 its /scale is asked (custom_scale.h).
//
// Thread: the loop thread (see client/reconcile.h).

#pragma once

#include <string>
#include <vector>

#include "client/reconcile.h"
#include "client/resource_discovery.h"

namespace muster::controllers {

class DisruptionController final : public client::Controller {
 public:
  // REQUIRES: `discovery` outlives the controller.
  explicit DisruptionController(const client::ResourceDiscovery& discovery)
      : discovery_(discovery) {}
  std::string_view name() const override { return "disruption-controller"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;

 private:
  const client::ResourceDiscovery& discovery_;
};

}  // namespace muster::controllers
