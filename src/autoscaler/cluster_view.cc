#include "autoscaler/cluster_view.h"

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "autoscaler/node_claim.h"
#include "base/strings.h"

namespace muster::autoscaler {
namespace {

size_t PositionOf(const std::vector<NodePool>& pools, const std::string& name) {
  return static_cast<size_t>(std::ranges::find(pools, name, &NodePool::name) - pools.begin());
}

// Of each pool what its machines have, those to come included: at most what a limit counts.
std::vector<cluster::ResourceList> UsedBy(const ClusterView& view,
                                          const std::vector<NodePool>& pools) {
  std::vector<cluster::ResourceList> used(pools.size());
  for (const json::Value& claim : view.claims) {
    const size_t pool = PositionOf(pools, PoolOf(claim));
    const cluster::InstanceType* type = TypeOf(claim, view.catalog);
    if (pool == pools.size() || type == nullptr) continue;
    cluster::AddTo(used[pool], cluster::ToResourceList(CapacityOf(*type)));
    cluster::AddTo(used[pool], {{std::string(kNodesResource), 1}});
  }
  return used;
}

const Offering* OfferingOf(const std::vector<Offering>& offerings, size_t pool,
                           const json::Value& claim, const cluster::InstanceType& type) {
  for (const Offering& each : offerings) {
    if (each.pool == pool && each.type.name == type.name && each.capacity == CapacityTypeOf(claim))
      return &each;
  }
  return nullptr;
}

// Machines that start count as the nodes that they become, and those whose devices have not
// appeared as if these had; those that go take no more pods.
void AddComing(const ClusterView& view, const std::vector<NodePool>& pools,
               const std::vector<Offering>& offerings, scheduler::ClusterCopy& copy) {
  for (const json::Value& claim : view.claims) {
    const std::string name = claim["metadata"]["name"].Str();
    const cluster::NodeIndex there = copy.cache.FindNode(name);
    if (IsDeleting(claim)) {
      if (there == cluster::kNoIndex) continue;
      cluster::NodeInfo going = copy.cache.snapshot().Node(there);
      going.unschedulable = true;
      copy.cache.UpsertNode(std::move(going));
      continue;
    }
    const cluster::InstanceType* type = TypeOf(claim, view.catalog);
    const size_t pool = PositionOf(pools, PoolOf(claim));
    if (Holds(claim, kInitialized) || type == nullptr || pool == pools.size()) continue;
    cluster::NodeInfo coming;
    if (const Offering* offering = OfferingOf(offerings, pool, claim, *type)) {
      coming = *offering->node;
    } else {
      coming = cluster::ToNodeInfo(NodeObject(pools[pool], *type, CapacityTypeOf(claim), name, {}));
    }
    coming.name = coming.uid = coming.hostname = name;
    coming.has_hostname = true;
    copy.cache.UpsertNode(std::move(coming));
  }
}

bool IsAvoided(const ClusterView& view, const std::vector<NodePool>& pools, const Offering& one) {
  return view.avoided.contains({pools[one.pool].name, one.type.name, one.capacity});
}

}  // namespace

ScaleUpAnswer AskWhatToAdd(const ClusterView& view, const std::vector<std::string>& scheduler_names,
                           const ScaleUpConfig& config) {
  ScaleUpAnswer answer;
  for (const json::Value& pool : view.pools) {
    if (!IsDeleting(pool)) answer.pools.push_back(ToNodePool(pool));
  }
  std::vector<Daemon> daemons;
  for (const json::Value& each : view.daemon_sets) daemons.push_back(ToDaemon(each));
  answer.offerings = OfferingsOf(answer.pools, view.catalog, daemons);
  answer.used = UsedBy(view, answer.pools);
  scheduler::ClusterCopy copy(view.lists, scheduler_names);
  AddComing(view, answer.pools, answer.offerings, copy);
  std::erase_if(answer.offerings,
                [&](const Offering& one) { return IsAvoided(view, answer.pools, one); });
  scheduler::Queue queue = scheduler::BuildQueue(copy.cache, copy.pending, copy.priorities, {});
  for (scheduler::Unit& unit : queue) {
    for (scheduler::QueuedPod& pod : unit.pods)
      pod.nominated = copy.cache.FindNode(copy.cache.FindPod(pod.key)->info.nominated_node);
  }
  answer.plan = PlanScaleUp(copy.cache.snapshot(), queue, answer.pools, answer.offerings,
                            answer.used, config);
  return answer;
}

std::string TextFor(const ScaleUpAnswer& answer, const scheduler::UnitKey& unit) {
  const auto verdict = std::ranges::find(answer.plan.units, unit, &UnitVerdict::unit);
  if (verdict == answer.plan.units.end()) return "";
  std::map<std::string, std::map<std::string, int>> added;  // by pool, by kind
  for (const size_t node : verdict->nodes) {
    const Offering& offering = answer.offerings[answer.plan.nodes[node].offering];
    ++added[answer.pools[offering.pool].name][TextOf(offering)];
  }
  std::vector<std::string> parts;
  for (const auto& [pool, kinds] : added) {
    std::vector<std::string> texts;
    for (const auto& [kind, count] : kinds)
      texts.push_back(count == 1 ? kind : fmt::format("{} x {}", count, kind));
    parts.push_back(fmt::format("NodePool {} adds {}", pool, Join(texts, " and ")));
  }
  if (!verdict->why_not.empty()) {
    parts.push_back(fmt::format("no node is added{}: {}",
                                verdict->nodes.empty() ? "" : " for the rest", verdict->why_not));
  }
  return Join(parts, "; ");
}

}  // namespace muster::autoscaler
