// src/autoscaler/consolidation_planner.h
//
// Which nodes of NodePools could go because all of their pods fit on other nodes that are there.
//
// Only pods of ReplicaSets and StatefulSets move: never those of a Job or of training, which would
// lose what they have done so far, nor pods that nobody makes again, nor any that a budget or the
// annotation karpenter.sh/do-not-disrupt holds. So GPUs that nobody uses keep no node where the
// pods that are left on it fit elsewhere.
//
// Thread: any (pure).

#pragma once

#include <string>
#include <vector>

#include "autoscaler/cluster_view.h"

namespace muster::autoscaler {

struct ConsolidationVerdict {
  std::string claim;
  std::string why_not;          // "": it may go
  size_t pods = 0;              // that would move
  cluster::MicroUsd price = 0;  // that is saved in an hour
};

// Of these claims, whose nodes are there and have pods: those that may go first, the fewest pods
// and the highest price before the others.
std::vector<ConsolidationVerdict> PlanConsolidation(
    const ClusterView& view, const std::vector<std::string>& claims,
    const std::vector<std::string>& scheduler_names);

}  // namespace muster::autoscaler
