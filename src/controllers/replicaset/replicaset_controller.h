// src/controllers/replicaset/replicaset_controller.h
//
// Keeps the pods of every ReplicaSet (replicaset_pass.h): adopts and releases what its selector
// says (controllers/pods/ownership.h).
//
// Thread:     the loop thread (see client/reconcile.h).
// Invariants: names of pods depend on the ReplicaSet's UID and on the pods that there are alone.

#pragma once

#include <string>
#include <vector>

#include "client/reconcile.h"

namespace muster::controllers {

class ReplicaSetController final : public client::Controller {
 public:
  std::string_view name() const override { return "replicaset-controller"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;
};

}  // namespace muster::controllers
