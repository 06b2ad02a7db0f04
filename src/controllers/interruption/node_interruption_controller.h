// src/controllers/interruption/node_interruption_controller.h
//
// What follows from the notice that a node is taken back (cluster/interruption.h), as spot nodes
// get it: the node is cordoned and tainted, with the condition Interrupted and an event. Its pods
// are evicted, with what is left until the deadline as the longest grace, so that training saves a
// checkpoint and begins again elsewhere; budgets (PodDisruptionBudgets) may hold some back until
// then. At the deadline a simulated node is no more; of any other one the pods are ended. When the
// notice is taken back, so is all that was done to the node.
//
// Keys:       nodes, and pods of nodes with a notice.
// Thread:     the loop thread (see client/reconcile.h).
// Invariants: no pod is evicted before the taint stands, so that none comes back to the node. Pods
//             of DaemonSets, static ones and those that tolerate the taint stay until the deadline.

#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "client/reconcile.h"

namespace muster::controllers {

class NodeInterruptionController final : public client::Controller {
 public:
  std::string_view name() const override { return "node-interruption-controller"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;

 private:
  std::set<std::string> interrupted_;  // nodes with a notice
};

}  // namespace muster::controllers
