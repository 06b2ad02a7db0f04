#include "scheduler/more_nodes.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>

#include <fmt/core.h>

#include "scheduler/affinity_faults.h"
#include "scheduler/gang_planner.h"
#include "scheduler/node_finder.h"
#include "scheduler/node_kinds.h"
#include "scheduler/rules.h"

namespace muster::scheduler {

using cluster::ClusterSnapshot;
using cluster::NodeIndex;

namespace {

// Copying a node or a placement costs about this much less than placing a pod.
constexpr size_t kCopiesPerPodOfWork = 16;

// One node of each kind that would take the pod were it empty, the smallest first.
std::vector<NodeIndex> Models(const ClusterSnapshot& snapshot, const cluster::Shape& shape) {
  std::vector<NodeIndex> models;
  std::set<std::string> kinds;
  NodeFilter filter(snapshot, shape);
  for (NodeIndex node = 0; node < snapshot.node_slots(); ++node) {
    if (!snapshot.HasNode(node) || !snapshot.OffersAmounts(shape, node)) continue;
    if (filter.Passes(node) && kinds.insert(KindOf(snapshot.Node(node))).second)
      models.push_back(node);
  }
  const cluster::ResourceIndex counted =
      shape.device_resource == cluster::kNoIndex ? cluster::kCpuIndex : shape.device_resource;
  std::stable_sort(models.begin(), models.end(), [&](NodeIndex a, NodeIndex b) {
    return snapshot.Offered(a, counted) < snapshot.Offered(b, counted);
  });
  return models;
}

bool FitsWith(const Unit& unit, const ClusterSnapshot& snapshot, NodeIndex like, int64_t count) {
  ClusterSnapshot larger = snapshot;
  for (int64_t i = 0; i < count; ++i) {
    auto node = std::make_shared<cluster::NodeInfo>(snapshot.Node(like));
    node->name = node->uid = fmt::format("{}-{}", node->name, i);
    if (node->has_hostname) node->hostname = node->name;
    larger.SetNode(static_cast<NodeIndex>(larger.node_slots()), std::move(node),
                   snapshot.ClassOf(like));
  }
  NodeFinder finder(larger);
  return !PlaceGang(unit, finder).placed.empty();
}

// What any pod of the unit finds room in.
cluster::ResourceList LargestOf(const Unit& unit, const ClusterSnapshot& snapshot) {
  std::map<std::string, int64_t> most;
  std::set<cluster::ShapeIndex> seen;
  for (const QueuedPod& pod : unit.pods) {
    if (!seen.insert(pod.shape).second) continue;
    for (const auto& [resource, amount] : snapshot.Shape(pod.shape).constraints.requests)
      most[resource] = std::max(most[resource], amount);
  }
  return {most.begin(), most.end()};
}

// nullopt: there is nothing that a node would have to have.
std::optional<MoreNodes> ShapeOfOne(const Unit& unit, size_t position,
                                    const ClusterSnapshot& snapshot) {
  const cluster::PodConstraints& pod = snapshot.Shape(unit.pods[position].shape).constraints;
  MoreNodes nodes;
  nodes.amounts = LargestOf(unit, snapshot);
  nodes.labels = pod.affinity.selector;
  if (pod.affinity.terms.size() == 1) {
    for (const cluster::Requirement& each : pod.affinity.terms[0].expressions) {
      if (each.op == cluster::SelectorOperator::kIn)
        nodes.labels.emplace_back(each.key, each.values.front());
    }
  }
  if (nodes.amounts.empty() && nodes.labels.empty()) return std::nullopt;
  return nodes;
}

}  // namespace

std::optional<MoreNodes> NodesToAdd(const Unit& unit, size_t position,
                                    const ClusterSnapshot& snapshot, size_t& work) {
  const cluster::Shape& shape = snapshot.Shape(unit.pods[position].shape);
  if (!ContradictionIn(shape.constraints.affinity).empty()) return std::nullopt;
  const std::vector<NodeIndex> models =
      shape.names_nodes ? std::vector<NodeIndex>{} : Models(snapshot, shape);
  for (const NodeIndex model : models) {
    // The fewest that do, by halving: more nodes never hurt where pods look at no others.
    int64_t low = 1, high = std::min(unit.Needed(), kMaxNodesAdded), found = 0;
    while (low <= high) {
      const int64_t count = found == 0 ? high : (low + high) / 2;
      const size_t cost =
          (snapshot.node_slots() + snapshot.placement_slots()) / kCopiesPerPodOfWork +
          static_cast<size_t>(count) + unit.pods.size();
      if (cost > work) return std::nullopt;
      work -= cost;
      if (FitsWith(unit, snapshot, model, count)) {
        found = count;
        high = count - 1;
      } else {
        if (found == 0) break;
        low = count + 1;
      }
    }
    if (found == 0) continue;
    MoreNodes nodes;
    nodes.count = found;
    nodes.like = snapshot.Node(model).name;
    nodes.kind = KindOf(snapshot.Node(model));
    nodes.amounts = snapshot.Node(model).allocatable;
    return nodes;
  }
  // A rule about other pods, or the name of one node, keeps it away from whatever is added.
  if (!models.empty() || shape.names_nodes) return std::nullopt;
  return ShapeOfOne(unit, position, snapshot);
}

}  // namespace muster::scheduler
