#include "scheduler/node_kinds.h"

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "cluster/resources.h"
#include "scheduler/failures.h"
#include "scheduler/rules.h"

namespace muster::scheduler {

using cluster::NodeInfo;

namespace {

constexpr int64_t kMilli = 1000;
constexpr int64_t kGibi = int64_t{1} << 30;

}  // namespace

std::string ModelOf(const NodeInfo& node) {
  if (const auto label = node.labels.find(kGpuModelLabel); label != node.labels.end())
    return label->second;
  for (const cluster::Device& device : node.devices) {
    if (!device.model.empty()) return device.model;
  }
  return "";
}

std::string KindOf(const NodeInfo& node) {
  std::string devices;
  for (const auto& [resource, amount] : node.allocatable) {
    if (!cluster::IsExtendedResource(resource) || amount == 0) continue;
    const bool gpu = resource == cluster::resource::kNvidiaGpu;
    devices +=
        fmt::format("{}{} {}", devices.empty() ? "" : " ", amount, gpu ? "GPU" : resource.c_str());
  }
  if (!devices.empty()) {
    const std::string model = ModelOf(node);
    return model.empty() ? devices : devices + " " + model;
  }
  // In whole units: machines of one order differ in a few MiB.
  const int64_t cpu = cluster::AmountOf(node.allocatable, cluster::resource::kCpu);
  const int64_t memory = cluster::AmountOf(node.allocatable, cluster::resource::kMemory);
  return fmt::format("{} cpu {}Gi", (cpu + kMilli / 2) / kMilli, (memory + kGibi / 2) / kGibi);
}

std::vector<NodeKind> GroupNodes(PodRules& pod_rules, cluster::ShapeIndex shape,
                                 cluster::IdentityIndex identity) {
  const cluster::ClusterSnapshot& snapshot = pod_rules.snapshot();
  std::map<std::string, std::vector<cluster::NodeIndex>> by_kind;
  for (cluster::NodeIndex node = 0; node < snapshot.node_slots(); ++node) {
    if (snapshot.HasNode(node)) by_kind[KindOf(snapshot.Node(node))].push_back(node);
  }
  std::vector<NodeKind> out;
  for (const auto& [kind, nodes] : by_kind) {
    NodeKind& row = out.emplace_back();
    row.kind = kind;
    row.nodes = static_cast<int64_t>(nodes.size());
    row.failed_by_rule = CountFailures(pod_rules, shape, identity, nodes).by_rule;
    for (const cluster::NodeIndex node : nodes) {
      if (row.names.size() < kMaxNodesListed) row.names.push_back(snapshot.Node(node).name);
    }
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const NodeKind& a, const NodeKind& b) { return a.nodes > b.nodes; });
  return out;
}

void AddFree(const cluster::ClusterSnapshot& snapshot, cluster::ShapeIndex shape,
             cluster::ResourceIndex scarce, std::vector<NodeKind>& kinds) {
  std::map<std::string, NodeKind*> rows;
  for (NodeKind& kind : kinds) rows[kind.kind] = &kind;
  NodeFilter filter(snapshot, snapshot.Shape(shape));
  for (cluster::NodeIndex node = 0; node < snapshot.node_slots(); ++node) {
    if (!snapshot.HasNode(node) || !filter.Passes(node)) continue;
    NodeKind& row = *rows.at(KindOf(snapshot.Node(node)));
    const int64_t free = std::max<int64_t>(snapshot.Free(node, scarce), 0);
    row.free += free;
    row.most_free_on_a_node = std::max(row.most_free_on_a_node, free);
  }
}

}  // namespace muster::scheduler
