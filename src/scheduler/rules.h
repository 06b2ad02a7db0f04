// src/scheduler/rules.h
//
// The filter rules: may this pod run on this node, and if not, which rule says so. The rules that
// look at no amounts are evaluated once per shape and node class (NodeFilter); amounts are
// ClusterSnapshot::FitsAmounts().
//
// Thread: any (pure).

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/snapshot.h"
#include "scheduler/explain.h"

namespace muster::scheduler {

enum class Rule : uint8_t { kPasses, kUnschedulable, kTaint, kAffinity };

// Everything but amounts. `taint` is set for kTaint.
struct RuleVerdict {
  Rule rule = Rule::kPasses;
  const cluster::Taint* taint = nullptr;
};
RuleVerdict CheckRules(const cluster::Shape& shape, const cluster::NodeClass& node_class,
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

// How many nodes each rule excludes now.
struct Failures {
  std::vector<RuleCount> by_rule;  // in kube-scheduler's words and order
  std::vector<int64_t>
      insufficient;  // by resource: nodes that pass the other rules and have too little
};
Failures CountFailures(const cluster::ClusterSnapshot& snapshot, const cluster::Shape& shape);

}  // namespace muster::scheduler
