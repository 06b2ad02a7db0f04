#include "controllers/statefulset/statefulset_controller.h"

#include <utility>

#include "controllers/history/history.h"
#include "controllers/pods/ownership.h"
#include "controllers/pods/pod_facts.h"
#include "controllers/pods/selected_objects.h"
#include "controllers/statefulset/stateful_pass.h"
#include "controllers/statefulset/stateful_pods.h"

namespace muster::controllers {
namespace {

namespace resources = client::resources;

// A pod with another name is no replica, whatever its labels.
void KeepOwnNames(const json::Value& set, std::vector<json::Value>& pods) {
  std::erase_if(pods, [&](const json::Value& pod) { return !OrdinalOf(set, pod).has_value(); });
}

}  // namespace

std::vector<client::Trigger> StatefulSetController::Setup(client::InformerSet& informers) {
  client::Informer& sets = informers.Get(resources::kStatefulSets, json::Fields::Whole());
  IndexBySelector(sets, SelectorOfSpec);
  client::Informer& pods = informers.Get(resources::kPods, PodFactFields());
  client::IndexByController(pods);
  IndexByLabels(pods);
  informers.Get(resources::kPersistentVolumeClaims);
  std::vector<client::Trigger> triggers = {
      client::OnSelf(resources::kStatefulSets),
      client::OnControlledBy(resources::kPods, "StatefulSet", "apps"),
      OnOrphan(resources::kPods, sets)};
  for (client::Trigger& trigger : FollowRevisions(informers, sets, "StatefulSet"))
    triggers.push_back(std::move(trigger));
  return triggers;
}

client::Reconciled StatefulSetController::Reconcile(const client::View& view,
                                                    const client::Observations& observations,
                                                    const client::ObjectKey& key, Time now,
                                                    uint64_t) {
  client::Reconciled out;
  const json::Value* set = view.Of(resources::kStatefulSets).Find(key);
  if (set == nullptr) return out;
  const client::Informer& pods = view.Of(resources::kPods);
  const client::Informer& all_claims = view.Of(resources::kPersistentVolumeClaims);
  const schema::LabelSelector selector = SelectorOfSpec(*set);
  Claims claims = Claim(*set, selector, Candidates(pods, *set, selector));
  KeepOwnNames(*set, claims.adopted);
  if (CarryOut(resources::kStatefulSets, *set, resources::kPods, observations, claims, out))
    return out;
  auto revisions = ClaimRevisions(view, resources::kStatefulSets, *set, observations, out);
  if (!revisions) return out;
  StatefulSetInput input;
  input.set = *set;
  input.pods = std::move(claims.owned);
  input.revisions = *std::move(revisions);
  input.revision_names = NamesThatBeginWith(view.Of(resources::kControllerRevisions), key);
  input.find_claim = [&](const std::string& name) {
    const json::Value* claim = all_claims.Find({key.ns, name});
    return claim == nullptr ? json::Value() : *claim;
  };
  ReconcileStatefulSet(input, now, out);
  return out;
}

}  // namespace muster::controllers
