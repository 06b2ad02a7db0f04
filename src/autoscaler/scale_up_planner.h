// src/autoscaler/scale_up_planner.h
//
// PlanScaleUp: which machines to add so that pods which no node takes get a place. Pure: the same
// arguments give the same plan.
//
// Order:  as the scheduler's queue. What fits on the nodes that are there, those that are coming
//         included, gets its place there and wants nothing.
// Gangs:  all pods of a gang at once, or none; pods on their own that are alike are one group.
// Choice: for each group, of the pools of the highest weight that can help, the set of machines of
//         one type that takes all of it at the lowest price, the fewest machines among equals; then
//         the last one is made as cheap as it can be. If limits do not let all of a group in, as
//         many of its pods as they do (of a gang at least what its minima ask for).
// Rules:  the scheduler's own, on its own snapshot: what is planned here is bound there.
// Limits: of a pool, never exceeded by what there is, what is coming and what is added.
// Left out: pods of DaemonSets (they come with nodes), pods for which room is being made by
//         preemption, gangs of which members are missing.
// Cost:   bounded by max_work, in pods and nodes looked at; groups beyond it wait for the next one.
// Thread: any.

#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "autoscaler/offering.h"
#include "cluster/snapshot.h"
#include "scheduler/pending.h"
#include "scheduler/queue.h"

namespace muster::autoscaler {

// Machines that one plan adds for one group.
inline constexpr int64_t kMaxNodesPerGroup = 1'000;
// Offerings that are tried for one group: the cheapest that could take one of its pods.
inline constexpr size_t kMaxOfferingsTried = 64;

struct ScaleUpConfig {
  size_t max_work = 20'000'000;  // a few seconds
};

struct NewNode {
  size_t offering = 0;  // position in the offerings
  std::vector<cluster::PodKey> pods;
};

// What becomes of a unit that waits.
struct UnitVerdict {
  scheduler::UnitKey unit;
  bool fits = false;          // on nodes that are there or coming
  std::vector<size_t> nodes;  // positions in ScaleUp::nodes
  std::string why_not;        // it does not fit, and nothing is added for some of its pods
};

struct ScaleUp {
  std::vector<NewNode> nodes;
  std::vector<UnitVerdict> units;  // in the order in which they were looked at
};

// `used`: by pool, what its machines have that are there or coming.
ScaleUp PlanScaleUp(const cluster::ClusterSnapshot& snapshot, const scheduler::Queue& queue,
                    const std::vector<NodePool>& pools, const std::vector<Offering>& offerings,
                    const std::vector<cluster::ResourceList>& used,
                    const ScaleUpConfig& config = {});

}  // namespace muster::autoscaler
