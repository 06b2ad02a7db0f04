#include "autoscaler/consolidation_planner.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include <fmt/core.h>

#include "autoscaler/node_claim.h"
#include "client/reconcile.h"
#include "scheduler/gang_planner.h"
#include "scheduler/node_finder.h"
#include "schema/label_selector.h"

namespace muster::autoscaler {
namespace {

using cluster::PodKey;

PodKey KeyOf(const json::Value& pod) {
  return {pod["metadata"]["namespace"].Str(), pod["metadata"]["name"].Str()};
}

bool IsHeldByBudget(const json::Value& pod, const json::Value& budgets) {
  return std::ranges::any_of(budgets["items"].items(), [&pod](const json::Value& budget) {
    if (budget["metadata"]["namespace"] != pod["metadata"]["namespace"]) return false;
    const auto selector = schema::LabelSelector::FromJson(budget["spec"]["selector"]);
    return selector && selector->Matches(pod["metadata"]["labels"]) &&
           budget["status"]["disruptionsAllowed"].AsInt() <= 0;
  });
}

// Why the pod cannot be asked to go; "" if it can.
std::string WhyItStays(const json::Value& pod, const json::Value& budgets) {
  const std::string name = KeyOf(pod).ToString();
  if (pod["metadata"]["annotations"][kDoNotDisrupt].AsString() == "true")
    return fmt::format("pod {} has the annotation {}", name, kDoNotDisrupt);
  const std::string_view owner = client::ControllerOf(pod)["kind"].AsString();
  if (owner.empty()) return fmt::format("nobody makes pod {} again", name);
  if (owner != "ReplicaSet" && owner != "StatefulSet")
    return fmt::format("pod {} of a {} would lose its work", name, owner);
  if (IsHeldByBudget(pod, budgets)) return fmt::format("a disruption budget holds pod {}", name);
  return "";
}

// The pods of each node that count.
std::map<std::string, std::vector<const json::Value*>> PodsByNode(const json::Value& pods) {
  std::map<std::string, std::vector<const json::Value*>> out;
  for (const json::Value& pod : pods["items"].items()) {
    const std::string node = pod["spec"]["nodeName"].Str();
    if (!node.empty() && Counts(pod)) out[node].push_back(&pod);
  }
  return out;
}

// All of them find a place on the other nodes.
bool FitElsewhere(const std::vector<const json::Value*>& pods, cluster::NodeIndex node,
                  const scheduler::ClusterCopy& copy) {
  cluster::ClusterSnapshot others = copy.cache.snapshot();
  for (cluster::PlacementIndex at = 0; at < others.placement_slots(); ++at) {
    if (others.At(at).node == node) others.Remove(at);
  }
  others.ClearNode(node);
  scheduler::Unit unit;
  for (const json::Value* pod : pods) {
    const cluster::PodRecord* record = copy.cache.FindPod(KeyOf(*pod));
    if (record == nullptr) return false;
    unit.pods.push_back({KeyOf(*pod), record->shape, record->holder, record->identity, {}});
  }
  scheduler::NodeFinder finder(others);
  return scheduler::PlaceWhatFits(unit, finder).placed.size() == pods.size();
}

}  // namespace

std::vector<ConsolidationVerdict> PlanConsolidation(
    const ClusterView& view, const std::vector<std::string>& claims,
    const std::vector<std::string>& scheduler_names) {
  const scheduler::ClusterCopy copy(view.lists, scheduler_names);
  const auto pods_by_node = PodsByNode(view.lists.pods);
  std::vector<ConsolidationVerdict> out;
  for (const json::Value& claim : view.claims) {
    const std::string name = claim["metadata"]["name"].Str();
    if (std::ranges::find(claims, name) == claims.end()) continue;
    const cluster::NodeIndex node = copy.cache.FindNode(name);
    const auto pods = pods_by_node.find(name);
    if (node == cluster::kNoIndex || pods == pods_by_node.end()) continue;
    ConsolidationVerdict verdict{name, "", pods->second.size(), 0};
    if (const cluster::InstanceType* type = TypeOf(claim, view.catalog))
      verdict.price = type->Price(CapacityTypeOf(claim));
    for (const json::Value* pod : pods->second) {
      if (verdict.why_not.empty())
        verdict.why_not = WhyItStays(*pod, view.lists.disruption_budgets);
    }
    if (verdict.why_not.empty() && !FitElsewhere(pods->second, node, copy))
      verdict.why_not = "its pods do not fit on other nodes";
    out.push_back(std::move(verdict));
  }
  std::ranges::stable_sort(out, {}, [](const ConsolidationVerdict& each) {
    return std::tuple(!each.why_not.empty(), each.pods, -each.price);
  });
  return out;
}

}  // namespace muster::autoscaler
