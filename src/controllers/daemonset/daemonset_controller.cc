#include "controllers/daemonset/daemonset_controller.h"

#include <utility>

#include "controllers/daemonset/daemon_pass.h"
#include "controllers/history/history.h"
#include "controllers/pods/ownership.h"
#include "controllers/pods/pod_facts.h"
#include "controllers/pods/selected_objects.h"
#include "schema/dcgm_exporter.h"
#include "schema/device_plugin.h"

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

// Once for each state of the spec: why the set has no pods (daemon_pods.h).
void TellOfWhatNodesDoThemselves(const json::Value& set, client::Reconciled& out) {
  if (set["status"]["observedGeneration"] == set["metadata"]["generation"]) return;
  const json::Value& pod_spec = set.Path({"spec", "template", "spec"});
  if (schema::IsNvidiaDevicePlugin(pod_spec)) {
    out.Event(set, client::EventType::kNormal, "DevicePluginNotNeeded",
              "muster offers nvidia.com/gpu itself and makes no pods of NVIDIA's device plugin");
  }
  if (schema::IsDcgmExporter(pod_spec)) {
    out.Event(set, client::EventType::kNormal, "DcgmExporterNotNeeded",
              "muster's nodes have the metrics DCGM_FI_DEV_* themselves and no pods of "
              "dcgm-exporter are made: scrape /api/v1/nodes/NODE/proxy/metrics");
  }
}

}  // namespace

client::Trigger DaemonSetController::Noting(client::Trigger trigger) {
  const bool is_node = trigger.resource == resources::kNodes;
  return {trigger.resource,
          [this, is_node, keys_of = std::move(trigger.keys)](
              const client::ObjectKey& key, const json::Value& before, const json::Value& after) {
            std::vector<client::ObjectKey> keys = keys_of(key, before, after);
            for (const client::ObjectKey& set : keys) {
              const auto memory = memories_.find(set);
              if (memory == memories_.end()) continue;
              if (is_node) {
                memory->second.nodes.insert(key.name);
              } else {
                memory->second.pods.insert(key);
              }
            }
            return keys;
          }};
}

std::vector<client::Trigger> DaemonSetController::Setup(client::InformerSet& informers) {
  client::Informer& sets = informers.Get(resources::kDaemonSets, json::Fields::Whole());
  IndexBySelector(sets, SelectorOfSpec);
  informers.Get(resources::kNodes, {{"metadata", "labels"}, {"spec"}});
  client::Informer& pods = informers.Get(
      resources::kPods, json::Fields(PodFactFields()).Add({{"spec", "affinity", "nodeAffinity"}}));
  client::IndexByController(pods);
  IndexByLabels(pods);
  std::vector<client::Trigger> triggers = {
      client::OnSelf(resources::kDaemonSets), Noting(OnNode(sets)),
      Noting(client::OnControlledBy(resources::kPods, "DaemonSet", "apps")),
      Noting(OnOrphan(resources::kPods, sets))};
  for (client::Trigger& trigger : FollowRevisions(informers, sets, "DaemonSet"))
    triggers.push_back(std::move(trigger));
  return triggers;
}

bool DaemonSetController::FollowChanges(const client::View& view, const json::Value& set,
                                        const schema::LabelSelector& selector, Memory& memory) {
  const client::Informer& pods = view.Of(resources::kPods);
  for (const client::ObjectKey& key : memory.pods) {
    const json::Value* pod = pods.Find(key);
    const Claims claims =
        Claim(set, selector,
              pod == nullptr ? std::vector<json::Value>() : std::vector<json::Value>{*pod});
    if (!claims.adopted.empty() || !claims.released.empty()) return false;
    if (claims.owned.empty()) {
      memory.ledger->RemovePod(key.name);
    } else {
      memory.ledger->PutPod(*pod);
    }
  }
  for (const std::string& node : memory.nodes) memory.ledger->Touch(node);
  memory.pods.clear();
  memory.nodes.clear();
  return true;
}

void DaemonSetController::Begin(const client::View& view, const json::Value& set,
                                const std::vector<json::Value>& owned, Memory& memory) {
  memory.pods.clear();
  memory.nodes.clear();
  memory.ledger.emplace(set);
  for (const auto& [key, node] : view.Of(resources::kNodes).objects())
    memory.ledger->Touch(key.name);
  for (const json::Value& pod : owned) memory.ledger->PutPod(pod);
}

client::Reconciled DaemonSetController::Reconcile(const client::View& view,
                                                  const client::Observations& observations,
                                                  const client::ObjectKey& key, Time now,
                                                  uint64_t seed) {
  client::Reconciled out;
  const json::Value* set = view.Of(resources::kDaemonSets).Find(key);
  const schema::LabelSelector selector =
      set == nullptr ? schema::LabelSelector::Nothing() : SelectorOfSpec(*set);
  if (set == nullptr || selector.empty()) {
    memories_.erase(key);
    if (set == nullptr) return out;
    out.Event(*set, client::EventType::kWarning, "SelectingAll",
              "This daemon set is selecting all pods. A non-empty selector is required.");
    return out;
  }
  TellOfWhatNodesDoThemselves(*set, out);
  const client::Informer& pods = view.Of(resources::kPods);
  Memory& memory = memories_[key];
  bool is_settled = true;
  if (!memory.ledger.has_value() || !memory.ledger->IsOf(*set) ||
      !FollowChanges(view, *set, selector, memory)) {
    memory.ledger.reset();
    Claims claims = Claim(*set, selector, Candidates(pods, *set, selector));
    is_settled = claims.adopted.empty() && claims.released.empty();
    if (CarryOut(resources::kDaemonSets, *set, resources::kPods, observations, claims, out))
      return out;
    Begin(view, *set, claims.owned, memory);
  }
  auto revisions = ClaimRevisions(view, resources::kDaemonSets, *set, observations, out);
  if (revisions.has_value()) {
    DaemonSetInput input{.daemon_set = *set, .nodes = view.Of(resources::kNodes)};
    input.revisions = *std::move(revisions);
    input.revision_names = NamesThatBeginWith(view.Of(resources::kControllerRevisions), key);
    input.is_taken = [&](const std::string& name) { return pods.Find({key.ns, name}) != nullptr; };
    input.seed = seed;
    ReconcileDaemonSet(input, *memory.ledger, now, out);
  }
  // It counts as adopted what may not be when the write is refused.
  if (!is_settled) memory.ledger.reset();
  return out;
}

}  // namespace muster::controllers
