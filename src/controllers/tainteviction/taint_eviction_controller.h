// src/controllers/tainteviction/taint_eviction_controller.h
//
// Pods leave nodes with a NoExecute taint, whoever set it: at once if they do not tolerate it, or
// when the shortest tolerationSeconds of the tolerations that match is over. Whose time has not
// come stays if the taint goes. Names and rules: pkg/controller/tainteviction of Kubernetes.
//
// Thread:     the loop thread (see client/reconcile.h).
// Invariants: the time of a taint counts from its timeAdded; of one without (users' have none) from
//             when it was first seen here.

#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "client/reconcile.h"

namespace muster::controllers {

class TaintEvictionController final : public client::Controller {
 public:
  std::string_view name() const override { return "taint-eviction-controller"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;

 private:
  // What is remembered of a node while it has such taints.
  struct NodeState {
    std::map<std::string, Time> seen;  // by key, value of a taint: when it was first seen
    std::set<std::string> waiting;     // UIDs of pods whose time has not come
  };

  std::map<std::string, NodeState> nodes_;
};

}  // namespace muster::controllers
