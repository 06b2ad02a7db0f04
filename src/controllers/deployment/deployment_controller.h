// src/controllers/deployment/deployment_controller.h
//
// Keeps the ReplicaSets of every Deployment (rollout.h): adopts and releases what its selector says
// (controllers/pods/ownership.h).
//
// Thread: the loop thread (see client/reconcile.h).

#pragma once

#include <string>
#include <vector>

#include "client/reconcile.h"

namespace muster::controllers {

class DeploymentController final : public client::Controller {
 public:
  std::string_view name() const override { return "deployment-controller"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;
};

}  // namespace muster::controllers
