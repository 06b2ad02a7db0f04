#include "scheduler/rules.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/core.h>

namespace muster::scheduler {

namespace {

// The pod may run on cordoned nodes: it tolerates the taint that a cordon stands for.
bool ToleratesCordon(const cluster::Shape& shape) {
  static const cluster::Taint kCordon{cluster::kUnschedulableTaint, "",
                                      cluster::TaintEffect::kNoSchedule};
  return cluster::Tolerates(shape.constraints.tolerations, kCordon);
}

std::string ReasonText(const RuleVerdict& verdict) {
  switch (verdict.rule) {
    case Rule::kUnschedulable:
      return "node(s) were unschedulable";
    case Rule::kTaint:
      return fmt::format("node(s) had untolerated taint {{{}: {}}}", verdict.taint->key,
                         verdict.taint->value);
    case Rule::kAffinity:
      return "node(s) didn't match Pod's node affinity/selector";
    case Rule::kPasses:
      break;
  }
  return "";
}

std::string InsufficientText(const cluster::ClusterSnapshot& snapshot,
                             cluster::ResourceIndex resource) {
  return resource == cluster::kPodsIndex ? "Too many pods"
                                         : "Insufficient " + snapshot.ResourceName(resource);
}

}  // namespace

RuleVerdict CheckRules(const cluster::Shape& shape, const cluster::NodeClass& node_class,
                       const cluster::NodeLabels& labels) {
  if (node_class.unschedulable && !ToleratesCordon(shape)) return {Rule::kUnschedulable, nullptr};
  if (const cluster::Taint* taint =
          cluster::FirstUntolerated(node_class.taints, shape.constraints.tolerations)) {
    return {Rule::kTaint, taint};
  }
  if (!shape.constraints.affinity.IsTrivial() &&
      !cluster::Matches(shape.constraints.affinity, labels)) {
    return {Rule::kAffinity, nullptr};
  }
  return {};
}

NodeFilter::NodeFilter(const cluster::ClusterSnapshot& snapshot, const cluster::Shape& shape)
    : snapshot_(snapshot), shape_(shape), by_class_(snapshot.class_slots()) {}

RuleVerdict NodeFilter::Check(cluster::NodeIndex node) {
  const cluster::ClassIndex index = snapshot_.ClassOf(node);
  if (shape_.names_nodes) {
    return CheckRules(shape_, snapshot_.Class(index), snapshot_.Node(node).labels_view());
  }
  Known& known = by_class_[index];
  if (!known.known) {
    known.verdict = CheckRules(shape_, snapshot_.Class(index), snapshot_.Node(node).labels_view());
    known.known = true;
  }
  return known.verdict;
}

Failures CountFailures(const cluster::ClusterSnapshot& snapshot, const cluster::Shape& shape) {
  NodeFilter filter(snapshot, shape);
  // Texts are made once per class (nodes of a class differ only if the shape names nodes), not once
  // per node.
  std::map<std::pair<Rule, const cluster::Taint*>, int64_t> excluded;
  Failures out;
  out.insufficient.assign(snapshot.resource_count(), 0);
  int64_t passing = 0;
  for (cluster::NodeIndex node = 0; node < snapshot.node_slots(); ++node) {
    if (!snapshot.HasNode(node)) continue;
    const RuleVerdict verdict = filter.Check(node);
    if (verdict.rule != Rule::kPasses) {
      ++excluded[{verdict.rule, verdict.taint}];
      continue;
    }
    ++passing;
    for (const cluster::ResourceAmount& request : shape.requests) {
      if (snapshot.Free(node, request.resource) < request.amount)
        ++out.insufficient[request.resource];
    }
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
