#include "controllers/replicaset/replicaset_controller.h"

#include <utility>

#include "controllers/pods/ownership.h"
#include "controllers/pods/pod_facts.h"
#include "controllers/pods/selected_objects.h"
#include "controllers/replicaset/replicaset_pass.h"

namespace muster::controllers {
namespace {

namespace resources = client::resources;

// Of all ReplicaSets that its owner controls.
std::vector<json::Value> RelatedPods(const client::View& view, const json::Value& replica_set,
                                     const std::vector<json::Value>& own) {
  const json::Value& owner = client::ControllerOf(replica_set);
  if (owner.IsNull()) return own;
  std::vector<json::Value> related;
  const client::Informer& replica_sets = view.Of(resources::kReplicaSets);
  const client::Informer& pods = view.Of(resources::kPods);
  for (const client::ObjectKey& sibling :
       client::ControlledBy(replica_sets, owner["uid"].AsString())) {
    const json::Value& uid = (*replica_sets.Find(sibling))["metadata"]["uid"];
    for (const client::ObjectKey& key : client::ControlledBy(pods, uid.AsString()))
      related.push_back(*pods.Find(key));
  }
  return related;
}

}  // namespace

std::vector<client::Trigger> ReplicaSetController::Setup(client::InformerSet& informers) {
  client::Informer& replica_sets = informers.Get(resources::kReplicaSets, json::Fields::Whole());
  client::IndexByController(replica_sets);
  IndexBySelector(replica_sets, SelectorOfSpec);
  client::Informer& pods = informers.Get(resources::kPods, PodFactFields());
  client::IndexByController(pods);
  IndexByLabels(pods);
  return {client::OnSelf(resources::kReplicaSets),
          client::OnControlledBy(resources::kPods, "ReplicaSet", "apps"),
          OnOrphan(resources::kPods, replica_sets)};
}

client::Reconciled ReplicaSetController::Reconcile(const client::View& view,
                                                   const client::Observations& observations,
                                                   const client::ObjectKey& key, Time now,
                                                   uint64_t seed) {
  client::Reconciled out;
  const json::Value* replica_set = view.Of(resources::kReplicaSets).Find(key);
  if (replica_set == nullptr) return out;
  const client::Informer& pods = view.Of(resources::kPods);
  const schema::LabelSelector selector = SelectorOfSpec(*replica_set);
  Claims claims = Claim(*replica_set, selector, Candidates(pods, *replica_set, selector));
  if (CarryOut(resources::kReplicaSets, *replica_set, resources::kPods, observations, claims, out))
    return out;
  ReplicaSetInput input;
  input.replica_set = *replica_set;
  input.pods = std::move(claims.owned);
  input.related_pods = RelatedPods(view, *replica_set, input.pods);
  input.is_taken = [&](const std::string& name) { return pods.Find({key.ns, name}) != nullptr; };
  if (const auto refused = observations.find(client::kRefusedWrite); refused != observations.end())
    input.refused = refused->second;
  input.seed = seed;
  ReconcileReplicaSet(input, now, out);
  return out;
}

}  // namespace muster::controllers
