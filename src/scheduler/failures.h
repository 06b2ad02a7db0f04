// src/scheduler/failures.h
//
// How many nodes each rule excludes for a pod: the numbers of an explanation.
//
// Thread: any, not shared (PodRules counts on demand).

#pragma once

#include <cstdint>
#include <vector>

#include "cluster/snapshot.h"
#include "scheduler/explain.h"
#include "scheduler/pod_rules.h"

namespace muster::scheduler {

struct Failures {
  std::vector<RuleCount> by_rule;  // in kube-scheduler's words and order
  // What the pod claims excludes all nodes alike, and nothing else is looked at; "" if not.
  std::string claim_fault;
  std::vector<int64_t>
      insufficient;  // by resource: nodes that pass the rules before it and have too little
};
Failures CountFailures(PodRules& pod_rules, cluster::ShapeIndex shape,
                       cluster::IdentityIndex identity);
// Of these nodes only. REQUIRES: HasNode() of each.
Failures CountFailures(PodRules& pod_rules, cluster::ShapeIndex shape,
                       cluster::IdentityIndex identity,
                       const std::vector<cluster::NodeIndex>& nodes);

// Nodes that one rule alone excludes, by that rule: what lifting it would open.
std::vector<RuleCount> ExcludedByOneRule(PodRules& pod_rules, cluster::ShapeIndex shape,
                                         cluster::IdentityIndex identity);

}  // namespace muster::scheduler
