// src/scheduler/gang_planner.h
//
// Places the pods of one unit on the working copy of a snapshot: all of them, or, if not all fit,
// as many as do but at least Unit::Needed(), or none.
//
// A gang places nothing while members are missing. A pod on its own is a gang of one.
//
// Life cycle: functions on a NodeFinder, which holds the working copy.
// Thread:     any, not shared.
// Invariants: transactional: after a refusal the snapshot is as before; the same inputs give the
//             same placements.
// Cost:       O(nodes) for the first pod of a shape, O(log nodes) for each further one.

#pragma once

#include <optional>
#include <vector>

#include "cluster/snapshot.h"
#include "scheduler/node_finder.h"
#include "scheduler/queue.h"

namespace muster::scheduler {

struct PlacedPod {
  size_t pod = 0;  // position in Unit::pods
  cluster::PlacementIndex placement = cluster::kNoIndex;
};

struct GangAttempt {
  std::vector<PlacedPod> placed;  // in the order of Unit::pods
  std::optional<size_t>
      first_unplaced;  // position in Unit::pods of the first pod that found no node
};

// Some pod of the unit looks at other pods: where these go may open nodes for it.
bool LooksAtPods(const Unit& unit, const NodeFinder& finder);

// Enough members exist for an attempt to make sense.
bool HasItsMembers(const Unit& unit);

// Places as many pods as fit and leaves them placed, whether they suffice or not.
GangAttempt PlaceWhatFits(const Unit& unit, NodeFinder& finder);

// The transaction. `placed` is empty if the unit does not fit.
// REQUIRES: HasItsMembers(unit).
GangAttempt PlaceGang(const Unit& unit, NodeFinder& finder);

void TakeBack(const GangAttempt& attempt, NodeFinder& finder);

}  // namespace muster::scheduler
