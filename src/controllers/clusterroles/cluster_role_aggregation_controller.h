// src/controllers/clusterroles/cluster_role_aggregation_controller.h
//
// Fills the rules of every ClusterRole that has an aggregationRule with those of the ClusterRoles
// that its selectors match, in the order of their names. Rules that somebody else put there go.
//
// Thread: the loop thread (see client/reconcile.h).

#pragma once

#include <set>
#include <string_view>
#include <vector>

#include "client/reconcile.h"

namespace muster::controllers {

class ClusterRoleAggregationController final : public client::Controller {
 public:
  std::string_view name() const override { return "clusterrole-aggregation-controller"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;

 private:
  // Those with an aggregationRule: a change of any ClusterRole may concern each of them.
  std::set<client::ObjectKey> aggregated_;
};

}  // namespace muster::controllers
