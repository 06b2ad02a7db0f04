#include "controllers/clusterroles/cluster_role_aggregation_controller.h"

#include <algorithm>
#include <utility>

#include "schema/label_selector.h"

namespace muster::controllers {
namespace {

const client::Resource kClusterRoles{"rbac.authorization.k8s.io", "v1", "clusterroles"};

bool IsAggregated(const json::Value& role) { return role["aggregationRule"].IsObject(); }

std::vector<schema::LabelSelector> SelectorsOf(const json::Value& role) {
  std::vector<schema::LabelSelector> selectors;
  for (const json::Value& one : role["aggregationRule"]["clusterRoleSelectors"].items()) {
    Result<schema::LabelSelector> selector = schema::LabelSelector::FromJson(one);
    if (selector) selectors.push_back(*std::move(selector));
  }
  return selectors;
}

}  // namespace

std::vector<client::Trigger> ClusterRoleAggregationController::Setup(
    client::InformerSet& informers) {
  informers.Get(kClusterRoles, {{"metadata", "labels"}, {"aggregationRule"}, {"rules"}});
  const auto keys = [this](const client::ObjectKey& key, const json::Value&,
                           const json::Value& after) {
    if (IsAggregated(after)) {
      aggregated_.insert(key);
    } else {
      aggregated_.erase(key);
    }
    return std::vector<client::ObjectKey>(aggregated_.begin(), aggregated_.end());
  };
  return {{kClusterRoles, keys}};
}

client::Reconciled ClusterRoleAggregationController::Reconcile(const client::View& view,
                                                               const client::Observations&,
                                                               const client::ObjectKey& key, Time,
                                                               uint64_t) {
  client::Reconciled out;
  const client::Informer& roles = view.Of(kClusterRoles);
  const json::Value* role = roles.Find(key);
  if (role == nullptr || !IsAggregated(*role) || (*role)["metadata"].Has("deletionTimestamp"))
    return out;
  const std::vector<schema::LabelSelector> selectors = SelectorsOf(*role);
  json::Array rules;
  for (const auto& [other, source] : roles.objects()) {
    const auto matches = [&](const schema::LabelSelector& selector) {
      return selector.Matches(source["metadata"]["labels"]);
    };
    if (other == key || std::ranges::none_of(selectors, matches)) continue;
    for (const json::Value& rule : source["rules"].items()) {
      if (std::ranges::find(rules, rule) == rules.end()) rules.push_back(rule);
    }
  }
  const json::Value wanted(std::move(rules));
  if (wanted == (*role)["rules"] || (wanted.empty() && (*role)["rules"].empty())) return out;
  out.PatchMerge({kClusterRoles, "", key.name, ""}, json::Obj({{"rules", wanted}}));
  return out;
}

}  // namespace muster::controllers
