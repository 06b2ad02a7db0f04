#include "controllers/deployment/deployment_controller.h"

#include <algorithm>

#include "controllers/deployment/rollout.h"
#include "controllers/pods/ownership.h"
#include "controllers/pods/selected_objects.h"
#include "schema/gpu_operator.h"
#include "schema/pod_phase.h"

namespace muster::controllers {
namespace {

namespace resources = client::resources;

// Its last pod is gone: Recreate goes on.
client::Trigger OnPodGone(const client::Informer& replica_sets) {
  return {resources::kPods, [&replica_sets](const client::ObjectKey& key, const json::Value& before,
                                            const json::Value& after) {
            std::vector<client::ObjectKey> keys;
            const bool over =
                after.IsNull() || schema::IsFinalPhase(after["status"]["phase"].AsString());
            const json::Value& owner = client::ControllerOf(before);
            if (!over || owner["kind"].AsString() != "ReplicaSet") return keys;
            const json::Value* replica_set = replica_sets.Find({key.ns, owner["name"].Str()});
            if (replica_set == nullptr) return keys;
            const json::Value& deployment = client::ControllerOf(*replica_set);
            if (deployment["kind"].AsString() == "Deployment")
              keys.push_back({key.ns, deployment["name"].Str()});
            return keys;
          }};
}

// Once for each state of the spec: why it has no pods (apiserver/kinds/workload_strategies.cc).
void TellOfGpuOperator(const json::Value& deployment, client::Reconciled& out) {
  if (deployment["status"]["observedGeneration"] == deployment["metadata"]["generation"] ||
      !schema::IsGpuOperator(deployment.Path({"spec", "template", "spec"})))
    return;
  out.Event(deployment, client::EventType::kNormal, "GpuOperatorNotNeeded",
            "muster's nodes offer nvidia.com/gpu and their metrics themselves, by the driver of "
            "the machine: NVIDIA's GPU operator is kept at 0 replicas");
}

}  // namespace

std::vector<client::Trigger> DeploymentController::Setup(client::InformerSet& informers) {
  client::Informer& deployments = informers.Get(resources::kDeployments, json::Fields::Whole());
  IndexBySelector(deployments, SelectorOfSpec);
  client::Informer& replica_sets = informers.Get(resources::kReplicaSets, json::Fields::Whole());
  client::IndexByController(replica_sets);
  IndexByLabels(replica_sets);
  client::IndexByController(informers.Get(resources::kPods, {{"status", "phase"}}));
  return {client::OnSelf(resources::kDeployments),
          client::OnControlledBy(resources::kReplicaSets, "Deployment", "apps"),
          OnOrphan(resources::kReplicaSets, deployments), OnPodGone(replica_sets)};
}

client::Reconciled DeploymentController::Reconcile(const client::View& view,
                                                   const client::Observations& observations,
                                                   const client::ObjectKey& key, Time now,
                                                   uint64_t) {
  client::Reconciled out;
  const json::Value* deployment = view.Of(resources::kDeployments).Find(key);
  if (deployment == nullptr) return out;
  const client::Informer& replica_sets = view.Of(resources::kReplicaSets);
  const client::Informer& pods = view.Of(resources::kPods);
  const schema::LabelSelector selector = SelectorOfSpec(*deployment);
  if (selector.empty()) {
    out.Event(*deployment, client::EventType::kWarning, "SelectingAll",
              "This deployment is selecting all pods. A non-empty selector is required.");
    return out;
  }
  Claims claims = Claim(*deployment, selector, Candidates(replica_sets, *deployment, selector));
  if (CarryOut(resources::kDeployments, *deployment, resources::kReplicaSets, observations, claims,
               out))
    return out;
  TellOfGpuOperator(*deployment, out);
  DeploymentInput input;
  input.deployment = *deployment;
  input.replica_sets = std::move(claims.owned);
  input.is_taken = [&](const std::string& name) {
    return replica_sets.Find({key.ns, name}) != nullptr;
  };
  input.has_pods = [&](const json::Value& replica_set) {
    const std::vector<client::ObjectKey> owned =
        client::ControlledBy(pods, replica_set["metadata"]["uid"].AsString());
    return std::any_of(owned.begin(), owned.end(), [&](const client::ObjectKey& pod) {
      return !schema::IsFinalPhase((*pods.Find(pod))["status"]["phase"].AsString());
    });
  };
  ReconcileDeployment(input, now, out);
  return out;
}

}  // namespace muster::controllers
