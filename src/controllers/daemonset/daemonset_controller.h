// src/controllers/daemonset/daemonset_controller.h
//
// Keeps the pods and revisions of every DaemonSet (daemon_pass.h).
//
// Thread: the loop thread (see client/reconcile.h).

#pragma once

#include <string>
#include <vector>

#include "client/reconcile.h"

namespace muster::controllers {

class DaemonSetController final : public client::Controller {
 public:
  std::string_view name() const override { return "daemonset-controller"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;
};

}  // namespace muster::controllers
