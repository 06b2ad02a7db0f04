// src/autoscaler/node_claim_controller.h
//
// The life of a NodeClaim with the simulated provider: its machine starts, which takes a while; a
// Node joins; the claim is Ready when the Node has all that it must have. A claim that is deleted
// first has its node closed (taint karpenter.sh/disrupted) and emptied, through the budgets of the
// pods (PodDisruptionBudgets), and goes with the node. Times: pkg/controllers/nodeclaim of
// Karpenter, which waits for ever for GPUs that do not appear; here there is a deadline, too.
//
// Thread:     the loop thread (see client/reconcile.h).
// Invariants: a claim whose node is gone (deleted, taken back) goes, too. No node is removed while
//             pods that count run on it.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "autoscaler/instance_catalog.h"
#include "client/reconcile.h"

namespace muster::autoscaler {

inline constexpr Duration kRegistrationDeadline = minutes(15);
inline constexpr Duration kInitializationDeadline = minutes(15);  // from the registration on

struct ProviderOptions {
  Catalog catalog;
  Duration start_delay = seconds(10);  // until a machine's Node joins
};

class NodeClaimController final : public client::Controller {
 public:
  explicit NodeClaimController(ProviderOptions options) : options_(std::move(options)) {}

  std::string_view name() const override { return "nodeclaim-controller"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;

 private:
  const ProviderOptions options_;
};

}  // namespace muster::autoscaler
