#include "scheduler/failures.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "scheduler/rules.h"

namespace muster::scheduler {

namespace {

std::string InsufficientText(const cluster::ClusterSnapshot& snapshot,
                             cluster::ResourceIndex resource) {
  return resource == cluster::kPodsIndex ? "Too many pods"
                                         : "Insufficient " + snapshot.ResourceName(resource);
}

}  // namespace

Failures CountFailures(PodRules& pod_rules, cluster::ShapeIndex index,
                       cluster::IdentityIndex identity) {
  const cluster::ClusterSnapshot& snapshot = pod_rules.snapshot();
  const cluster::Shape& shape = snapshot.Shape(index);
  const LookIndex look = pod_rules.LookOf(index, identity);
  const bool looks = look != cluster::kNoIndex;
  NodeFilter filter(snapshot, shape);
  // Texts are made once per class (nodes of a class differ only if the shape names nodes), not once
  // per node.
  std::map<std::pair<Rule, const cluster::Taint*>, int64_t> excluded;
  Failures out;
  out.insufficient.assign(snapshot.resource_count(), 0);
  int64_t passing = 0;
  for (cluster::NodeIndex node = 0; node < snapshot.node_slots(); ++node) {
    if (!snapshot.HasNode(node)) continue;
    RuleVerdict verdict = filter.Check(node);
    if (looks && verdict.rule == Rule::kPasses) verdict.rule = pod_rules.CheckPorts(look, node);
    if (verdict.rule != Rule::kPasses) {
      ++excluded[{verdict.rule, verdict.taint}];
      continue;
    }
    ++passing;
    bool has_room = shape.unknown_resource.empty();
    for (const cluster::ResourceAmount& request : shape.requests) {
      if (snapshot.Free(node, request.resource) >= request.amount) continue;
      ++out.insufficient[request.resource];
      has_room = false;
    }
    if (!looks || !has_room) continue;
    const Rule rule = pod_rules.CheckTopology(look, node);
    if (rule != Rule::kPasses) ++excluded[{rule, nullptr}];
  }
  std::map<std::string, int64_t> counts;
  for (const auto& [why, nodes] : excluded) counts[ReasonText({why.first, why.second})] += nodes;
  for (size_t resource = 0; resource < out.insufficient.size(); ++resource) {
    if (out.insufficient[resource] == 0) continue;
    counts[InsufficientText(snapshot, static_cast<cluster::ResourceIndex>(resource))] =
        out.insufficient[resource];
  }
  if (!shape.unknown_resource.empty() && passing > 0)
    counts["Insufficient " + shape.unknown_resource] = passing;

  // kube-scheduler sorts the texts "N reason", not the numbers.
  for (const auto& [reason, nodes] : counts) out.by_rule.push_back({reason, nodes});
  const auto text = [](const RuleCount& count) {
    return fmt::format("{} {}", count.nodes, count.reason);
  };
  std::sort(out.by_rule.begin(), out.by_rule.end(),
            [&](const RuleCount& a, const RuleCount& b) { return text(a) < text(b); });
  return out;
}

}  // namespace muster::scheduler
