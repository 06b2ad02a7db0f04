// src/controllers/podautoscaler/podautoscaler_controller.h
//
// Changes the replicas of what HorizontalPodAutoscalers point to (autoscaler_pass.h): once
// a period, and when a spec changes.
//
// Thread: the loop thread (see client/reconcile.h).

#pragma once

#include <string_view>
#include <vector>

#include "client/reconcile.h"
#include "client/resource_discovery.h"
#include "controllers/podautoscaler/autoscaler_pass.h"

namespace muster::controllers {

class PodAutoscalerController final : public client::Controller {
 public:
  // REQUIRES: `discovery` outlives the controller; period > 0.
  explicit PodAutoscalerController(const client::ResourceDiscovery& discovery,
                                   Duration period = kAutoscalerPeriod)
      : discovery_(discovery), period_(period) {}

  std::string_view name() const override { return "horizontal-pod-autoscaler"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;

 private:
  const client::ResourceDiscovery& discovery_;
  const Duration period_;
  AutoscalerMemories memories_;
};

}  // namespace muster::controllers
