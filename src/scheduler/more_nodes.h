// src/scheduler/more_nodes.h
//
// Which nodes would have to be added for a unit to fit: more of a kind that is there, found out by
// planning with them, or else the shape of a node that would do for one of its pods.
//
// Thread: any (pure).

#pragma once

#include <cstddef>
#include <optional>

#include "cluster/snapshot.h"
#include "scheduler/explain.h"
#include "scheduler/queue.h"

namespace muster::scheduler {

// Nodes that are added in a trial.
inline constexpr int64_t kMaxNodesAdded = 1'000;

// nullopt if no number of nodes helps, or `work`, in pods looked at, which is reduced, is used up.
// REQUIRES: the unit does not fit; `pod`, a position in its pods, is one that found no node.
std::optional<MoreNodes> NodesToAdd(const Unit& unit, size_t pod,
                                    const cluster::ClusterSnapshot& snapshot, size_t& work);

}  // namespace muster::scheduler
