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

// kube-scheduler sorts the texts "N reason", not the numbers.
std::vector<RuleCount> InOrder(const std::map<std::string, int64_t>& counts) {
  std::vector<RuleCount> out;
  for (const auto& [reason, nodes] : counts) out.push_back({reason, nodes});
  const auto text = [](const RuleCount& count) {
    return fmt::format("{} {}", count.nodes, count.reason);
  };
  std::sort(out.begin(), out.end(),
            [&](const RuleCount& a, const RuleCount& b) { return text(a) < text(b); });
  return out;
}

}  // namespace

Failures CountFailures(PodRules& pod_rules, cluster::ShapeIndex shape,
                       cluster::IdentityIndex identity) {
  const cluster::ClusterSnapshot& snapshot = pod_rules.snapshot();
  std::vector<cluster::NodeIndex> nodes;
  for (cluster::NodeIndex node = 0; node < snapshot.node_slots(); ++node) {
    if (snapshot.HasNode(node)) nodes.push_back(node);
  }
  return CountFailures(pod_rules, shape, identity, nodes);
}

Failures CountFailures(PodRules& pod_rules, cluster::ShapeIndex index,
                       cluster::IdentityIndex identity,
                       const std::vector<cluster::NodeIndex>& nodes) {
  const cluster::ClusterSnapshot& snapshot = pod_rules.snapshot();
  const cluster::Shape& shape = snapshot.Shape(index);
  const LookIndex look = pod_rules.LookOf(index, identity);
  const bool looks = look != cluster::kNoIndex;
  Failures out;
  out.insufficient.assign(snapshot.resource_count(), 0);
  out.claim_fault = pod_rules.volumes().Fault(index);
  if (!out.claim_fault.empty()) {
    out.by_rule.push_back({out.claim_fault, static_cast<int64_t>(nodes.size())});
    return out;
  }
  NodeFilter filter(snapshot, shape);
  // Texts are made once per class (nodes of a class differ only if the shape names nodes), not once
  // per node.
  std::map<std::pair<Rule, const cluster::Taint*>, int64_t> excluded;
  int64_t passing = 0;
  for (const cluster::NodeIndex node : nodes) {
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
    for (const Rule rule : pod_rules.FailedRules(look, node)) ++excluded[{rule, nullptr}];
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

  out.by_rule = InOrder(counts);
  return out;
}

std::vector<RuleCount> ExcludedByOneRule(PodRules& pod_rules, cluster::ShapeIndex index,
                                         cluster::IdentityIndex identity) {
  const cluster::ClusterSnapshot& snapshot = pod_rules.snapshot();
  const cluster::Shape& shape = snapshot.Shape(index);
  const LookIndex look = pod_rules.LookOf(index, identity);
  std::map<std::string, int64_t> counts;
  for (cluster::NodeIndex node = 0; node < snapshot.node_slots(); ++node) {
    if (!snapshot.HasNode(node)) continue;
    std::vector<std::string> reasons;
    const cluster::NodeClass& node_class = snapshot.Class(snapshot.ClassOf(node));
    for (const RuleVerdict& verdict :
         AllFailedRules(shape, node_class, snapshot.Node(node).labels_view()))
      reasons.push_back(ReasonText(verdict));
    const Rule ports = pod_rules.CheckPorts(look, node);
    if (ports != Rule::kPasses) reasons.push_back(ReasonText({ports, nullptr}));
    for (const Rule rule : pod_rules.FailedRules(look, node)) {
      reasons.push_back(rule == Rule::kClaim ? std::string(pod_rules.volumes().Fault(index))
                                             : ReasonText({rule, nullptr}));
    }
    for (const cluster::ResourceAmount& request : shape.requests) {
      if (snapshot.Free(node, request.resource) < request.amount)
        reasons.push_back(InsufficientText(snapshot, request.resource));
    }
    if (!shape.unknown_resource.empty())
      reasons.push_back("Insufficient " + shape.unknown_resource);
    if (reasons.size() == 1) ++counts[reasons.front()];
  }
  return InOrder(counts);
}

}  // namespace muster::scheduler
