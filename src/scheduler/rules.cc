#include "scheduler/rules.h"

#include <fmt/core.h>

namespace muster::scheduler {

namespace {

// The pod may run on cordoned nodes: it tolerates the taint that a cordon stands for.
bool ToleratesCordon(const cluster::Shape& shape) {
  static const cluster::Taint kCordon{cluster::kUnschedulableTaint, "",
                                      cluster::TaintEffect::kNoSchedule};
  return cluster::Tolerates(shape.constraints.tolerations, kCordon);
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

std::vector<RuleVerdict> AllFailedRules(const cluster::Shape& shape,
                                        const cluster::NodeClass& node_class,
                                        const cluster::NodeLabels& labels) {
  std::vector<RuleVerdict> failed;
  if (node_class.unschedulable && !ToleratesCordon(shape))
    failed.push_back({Rule::kUnschedulable, nullptr});
  for (const cluster::Taint& taint : node_class.taints) {
    // Says the same as the cordon.
    if (node_class.unschedulable && taint.key == cluster::kUnschedulableTaint) continue;
    if (cluster::FirstUntolerated({taint}, shape.constraints.tolerations) != nullptr)
      failed.push_back({Rule::kTaint, &taint});
  }
  if (!cluster::Matches(shape.constraints.affinity, labels))
    failed.push_back({Rule::kAffinity, nullptr});
  return failed;
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

std::string ReasonText(const RuleVerdict& verdict) {
  switch (verdict.rule) {
    case Rule::kUnschedulable:
      return "node(s) were unschedulable";
    case Rule::kTaint:
      return fmt::format("node(s) had untolerated taint {{{}: {}}}", verdict.taint->key,
                         verdict.taint->value);
    case Rule::kAffinity:
      return "node(s) didn't match Pod's node affinity/selector";
    case Rule::kPorts:
      return "node(s) didn't have free ports for the requested pod ports";
    case Rule::kClaimInUse:
      return "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod "
             "access mode";
    case Rule::kVolumeAffinity:
      return "node(s) had volume node affinity conflict";
    case Rule::kNoVolume:
      return "node(s) didn't find available persistent volumes to bind";
    case Rule::kVolumeGone:
      return "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";
    case Rule::kVolumeZone:
      return "node(s) had no available volume zone";
    case Rule::kSpreadLabel:
      return "node(s) didn't match pod topology spread constraints (missing required label)";
    case Rule::kSpread:
      return "node(s) didn't match pod topology spread constraints";
    case Rule::kPodAffinity:
      return "node(s) didn't match pod affinity rules";
    case Rule::kPodAntiAffinity:
      return "node(s) didn't match pod anti-affinity rules";
    case Rule::kExistingAntiAffinity:
      return "node(s) didn't satisfy existing pods anti-affinity rules";
    case Rule::kClaim:
    case Rule::kPasses:
      break;
  }
  return "";
}

}  // namespace muster::scheduler
