#include "controllers/daemonset/daemonset_controller.h"

#include <utility>

#include "controllers/daemonset/daemon_pass.h"
#include "controllers/history/history.h"
#include "controllers/pods/ownership.h"
#include "controllers/pods/pod_facts.h"
#include "controllers/pods/selected_objects.h"

namespace muster::controllers {
namespace {

namespace resources = client::resources;

// Whether a node suits a pod depends on its labels and its taints alone.
client::Trigger OnNode(const client::Informer& sets) {
  return {resources::kNodes,
          [&sets](const client::ObjectKey&, const json::Value& before, const json::Value& after) {
            std::vector<client::ObjectKey> keys;
            if (!before.IsNull() && !after.IsNull() &&
                before["metadata"]["labels"] == after["metadata"]["labels"] &&
                before["spec"] == after["spec"])
              return keys;
            for (const auto& [key, set] : sets.objects()) keys.push_back(key);
            return keys;
          }};
}

}  // namespace

std::vector<client::Trigger> DaemonSetController::Setup(client::InformerSet& informers) {
  client::Informer& sets = informers.Get(resources::kDaemonSets, json::Fields::Whole());
  IndexBySelector(sets, SelectorOfSpec);
  informers.Get(resources::kNodes, {{"metadata", "labels"}, {"spec"}});
  client::Informer& pods = informers.Get(
      resources::kPods, json::Fields(PodFactFields()).Add({{"spec", "affinity", "nodeAffinity"}}));
  client::IndexByController(pods);
  IndexByLabels(pods);
  std::vector<client::Trigger> triggers = {
      client::OnSelf(resources::kDaemonSets), OnNode(sets),
      client::OnControlledBy(resources::kPods, "DaemonSet", "apps"),
      OnOrphan(resources::kPods, sets)};
  for (client::Trigger& trigger : FollowRevisions(informers, sets, "DaemonSet"))
    triggers.push_back(std::move(trigger));
  return triggers;
}

client::Reconciled DaemonSetController::Reconcile(const client::View& view,
                                                  const client::Observations& observations,
                                                  const client::ObjectKey& key, Time now,
                                                  uint64_t seed) {
  client::Reconciled out;
  const json::Value* set = view.Of(resources::kDaemonSets).Find(key);
  if (set == nullptr) return out;
  const client::Informer& pods = view.Of(resources::kPods);
  const schema::LabelSelector selector = SelectorOfSpec(*set);
  if (selector.empty()) {
    out.Event(*set, client::EventType::kWarning, "SelectingAll",
              "This daemon set is selecting all pods. A non-empty selector is required.");
    return out;
  }
  Claims claims = Claim(*set, selector, Candidates(pods, *set, selector));
  if (CarryOut(resources::kDaemonSets, *set, resources::kPods, observations, claims, out))
    return out;
  auto revisions = ClaimRevisions(view, resources::kDaemonSets, *set, observations, out);
  if (!revisions) return out;
  DaemonSetInput input;
  input.daemon_set = *set;
  for (const auto& [name, node] : view.Of(resources::kNodes).objects()) input.nodes.push_back(node);
  input.pods = std::move(claims.owned);
  input.revisions = *std::move(revisions);
  input.revision_names = NamesThatBeginWith(view.Of(resources::kControllerRevisions), key);
  input.is_taken = [&](const std::string& name) { return pods.Find({key.ns, name}) != nullptr; };
  input.seed = seed;
  ReconcileDaemonSet(input, now, out);
  return out;
}

}  // namespace muster::controllers
