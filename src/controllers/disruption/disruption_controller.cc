#include "controllers/disruption/disruption_controller.h"

#include <set>

#include "controllers/disruption/budget.h"
#include "controllers/disruption/custom_scale.h"
#include "controllers/pods/pod_facts.h"
#include "controllers/pods/selected_objects.h"

namespace muster::controllers {
namespace {

namespace resources = client::resources;

client::Trigger OnSelected(const client::Informer& budgets) {
  return {
      resources::kPods, [&budgets](const client::ObjectKey& pod, const json::Value& before,
                                   const json::Value& after) {
        std::set<client::ObjectKey> keys;
        for (const json::Value* state : {&before, &after}) {
          if (state->IsNull()) continue;
          const json::Value& labels = (*state)["metadata"]["labels"];
          for (const client::ObjectKey& key : SelectedBy(budgets, SelectorOfSpec, pod.ns, labels))
            keys.insert(key);
        }
        return std::vector<client::ObjectKey>(keys.begin(), keys.end());
      }};
}

// The object of that kind and name, if it is the very one that `reference` means.
const json::Value* Referred(const client::View& view, const client::Resource& resource,
                            const std::string& ns, const json::Value& reference) {
  const json::Value* object = view.Of(resource).Find({ns, reference["name"].Str()});
  return object != nullptr && (*object)["metadata"]["uid"] == reference["uid"] ? object : nullptr;
}

WantedScale ScaleOf(const client::View& view, const json::Value& pod, CustomScales& custom) {
  const json::Value& owner = client::ControllerOf(pod);
  if (owner.IsNull()) return {};
  const std::string ns = pod["metadata"]["namespace"].Str();
  const std::string_view kind = owner["kind"].AsString();
  const bool of_apps = owner["apiVersion"].AsString().starts_with("apps/");
  const json::Value* found = nullptr;
  if (of_apps && kind == "ReplicaSet") {
    found = Referred(view, resources::kReplicaSets, ns, owner);
    const json::Value& above = found == nullptr ? json::Value() : client::ControllerOf(*found);
    if (above["kind"].AsString() == "Deployment") {
      if (const json::Value* deployment = Referred(view, resources::kDeployments, ns, above))
        found = deployment;
    }
  } else if (of_apps && kind == "StatefulSet") {
    found = Referred(view, resources::kStatefulSets, ns, owner);
  } else {
    return custom.Of(pod, owner);
  }
  if (found == nullptr) return NoController(pod);
  return {(*found)["metadata"]["uid"].Str(), (*found)["spec"]["replicas"].AsInt(1), ""};
}

}  // namespace

std::vector<client::Trigger> DisruptionController::Setup(client::InformerSet& informers) {
  client::Informer& budgets =
      informers.Get(resources::kPodDisruptionBudgets, json::Fields::Whole());
  IndexBySelector(budgets, SelectorOfSpec);
  IndexByLabels(informers.Get(resources::kPods, PodFactFields()));
  for (const client::Resource& scalable :
       {resources::kReplicaSets, resources::kDeployments, resources::kStatefulSets})
    informers.Get(scalable, {{"spec", "replicas"}});
  return {client::OnSelf(resources::kPodDisruptionBudgets), OnSelected(budgets)};
}

client::Reconciled DisruptionController::Reconcile(const client::View& view,
                                                   const client::Observations& observations,
                                                   const client::ObjectKey& key, Time now,
                                                   uint64_t) {
  client::Reconciled out;
  const json::Value* budget = view.Of(resources::kPodDisruptionBudgets).Find(key);
  if (budget == nullptr || (*budget)["metadata"].Has("deletionTimestamp")) return out;
  const client::Informer& pods = view.Of(resources::kPods);
  BudgetInput input;
  input.budget = *budget;
  for (const client::ObjectKey& pod : Select(pods, key.ns, SelectorOfSpec(*budget)))
    input.pods.push_back(*pods.Find(pod));
  CustomScales custom(discovery_, observations, now);
  input.scale_of = [&](const json::Value& pod) { return ScaleOf(view, pod, custom); };
  ReconcileBudget(input, now, out);
  custom.Ask(out);
  return out;
}

}  // namespace muster::controllers
