// src/autoscaler/node_disruption_controller.h
//
// Lets nodes of NodePools go that have been empty for the pool's consolidateAfter: no pods but
// those of DaemonSets and static ones. First the node is closed (taint karpenter.sh/disrupted);
// when it is still empty kSettle later, so that no binding was on its way, its NodeClaim is
// deleted, else it is opened again. The claim's condition Consolidatable says whether, and if not
// why, the node stays. Source: pkg/controllers/disruption of Karpenter.
//
// Thread:     the loop thread (see client/reconcile.h).
// Invariants: never more nodes of a pool at a time than its budgets allow. A node stays while it,
//             its claim or a pod on it has the annotation karpenter.sh/do-not-disrupt, and in its
//             first kFirstPods, in which the pods come for which it was made.

#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "client/reconcile.h"

namespace muster::autoscaler {

inline constexpr Duration kSettle = seconds(3);
inline constexpr Duration kFirstPods = seconds(20);
inline constexpr Duration kBudgetPeriod = seconds(10);  // how often one that may not go looks again

class NodeDisruptionController final : public client::Controller {
 public:
  std::string_view name() const override { return "disruption"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;

 private:
  // Since when the node is empty, as far as was seen here.
  std::map<std::string, Time> empty_since_;
  // When it was decided to close a node, until the taint is seen: another one's turn must know.
  std::map<std::string, Time> closing_;
};

}  // namespace muster::autoscaler
