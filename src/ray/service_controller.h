// src/ray/service_controller.h
//
// The controller of RayServices: finds a service's clusters, their pods and its Services in the
// informers and hands them to service_pass.h.
//
// Thread:     the loop thread (see client/reconcile.h).

#pragma once

#include <string_view>
#include <vector>

#include "client/reconcile.h"

namespace muster::ray {

class ServiceController final : public client::Controller {
 public:
  std::string_view name() const override { return "rayservice-controller"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;
};

}  // namespace muster::ray
