// src/scheduler/rules.h
//
// The filter rules: may this pod run on this node, and if not, which rule says so. The rules that
// look at no amounts and no pods are evaluated once per shape and node class (NodeFilter); amounts
// are ClusterSnapshot::FitsAmounts(), other pods PodRules.
//
// Thread: any (pure).

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/snapshot.h"

namespace muster::scheduler {

// In the order in which they are looked at; amounts come after kPorts.
enum class Rule : uint8_t {
  kPasses,
  kUnschedulable,
  kTaint,
  kAffinity,
  // These look at other pods: pod_rules.h.
  kPorts,
  // About what the pod claims: volume_rules.h.
  kClaim,  // whatever the node; VolumeRules::Fault() says what
  kClaimInUse,
  kVolumeAffinity,
  kNoVolume,
  kVolumeGone,
  kVolumeZone,
  // Other pods again.
  kSpreadLabel,
  kSpread,
  kPodAffinity,
  kPodAntiAffinity,
  kExistingAntiAffinity,
};

// Everything but amounts and other pods. `taint` is set for kTaint.
struct RuleVerdict {
  Rule rule = Rule::kPasses;
  const cluster::Taint* taint = nullptr;
};
RuleVerdict CheckRules(const cluster::Shape& shape, const cluster::NodeClass& node_class,
                       const cluster::NodeLabels& labels);

// All that exclude the pod, not only the first.
std::vector<RuleVerdict> AllFailedRules(const cluster::Shape& shape,
                                        const cluster::NodeClass& node_class,
                                        const cluster::NodeLabels& labels);

// The rules for one shape on all nodes of a snapshot, each class looked at once.
class NodeFilter {
 public:
  NodeFilter(const cluster::ClusterSnapshot& snapshot, const cluster::Shape& shape);
  // REQUIRES: HasNode(node).
  bool Passes(cluster::NodeIndex node) { return Check(node).rule == Rule::kPasses; }
  RuleVerdict Check(cluster::NodeIndex node);

 private:
  struct Known {
    bool known = false;
    RuleVerdict verdict;
  };
  const cluster::ClusterSnapshot& snapshot_;
  const cluster::Shape& shape_;
  std::vector<Known> by_class_;
};

// In kube-scheduler's words (v1.32), without the number of nodes.
std::string ReasonText(const RuleVerdict& verdict);

}  // namespace muster::scheduler
