// src/scheduler/gang_planner.h
//
// Places the pods of one unit on the working copy of a snapshot: all of them, or, if not all fit,
// as many as do but at least what its minima ask for (Unit::Suffices()), or none.
//
// A gang places nothing while members are missing, or while the cluster has less free than the
// gang's minResources. A pod on its own is a gang of one.
//
// Order of the pods: as they were created, so that neighbouring ranks become neighbours. If that
//             does not place enough, and the pods differ, the easiest that suffice are chosen and
//             placed from the hardest on (gang_search.h), then the rest as they were created.
// Life cycle: functions on a NodeFinder, which holds the working copy.
// Thread:     any, not shared.
// Invariants: transactional: after a refusal the snapshot is as before; the same inputs give the
//             same placements.
// Cost:       O(nodes) for the first pod of a shape, O(log nodes) for each further one; what the
//             search may cost is its budget.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cluster/snapshot.h"
#include "scheduler/gang_search.h"
#include "scheduler/node_finder.h"
#include "scheduler/queue.h"

namespace muster::scheduler {

struct GangAttempt {
  std::vector<PlacedPod> placed;  // in the order in which they were placed
  std::optional<size_t>
      first_unplaced;      // position in Unit::pods of the first pod that found no node
  bool undecided = false;  // the search ended at its bound: the gang may fit all the same
};

// Some pod of the unit looks at other pods: where these go may open nodes for it.
bool LooksAtPods(const Unit& unit, const NodeFinder& finder);

// Enough members exist for an attempt to make sense.
bool HasItsMembers(const Unit& unit);

// One of the gang's minResources of which the cluster has too little.
struct Shortage {
  std::string resource;
  int64_t wanted = 0;
};
// Free amounts are summed over all nodes, as upstream does. Nothing if what the pods themselves ask
// for says as much.
std::optional<Shortage> ShortOf(const Unit& unit, const cluster::ClusterSnapshot& snapshot);

// Places as many pods as fit and leaves them placed, whether they suffice or not; of a sub-group
// that is not whole as many as it needs or none.
GangAttempt PlaceWhatFits(const Unit& unit, NodeFinder& finder, SearchBudget& budget);
// With a budget of its own.
GangAttempt PlaceWhatFits(const Unit& unit, NodeFinder& finder);

// Adds to what is placed already as many of the others as fit: first sub-groups, each as a gang of
// its own, then pod by pod.
void PlaceMore(const Unit& unit, NodeFinder& finder, SearchBudget& budget, GangAttempt& attempt);

// The transaction. `placed` is empty if the unit does not fit, or lacks members.
GangAttempt PlaceGang(const Unit& unit, NodeFinder& finder, SearchBudget& budget);
// With a budget of its own.
GangAttempt PlaceGang(const Unit& unit, NodeFinder& finder);

void TakeBack(const GangAttempt& attempt, NodeFinder& finder);
// Those beyond what the unit needs.
void TakeBackElastic(const Unit& unit, NodeFinder& finder, GangAttempt& attempt);

}  // namespace muster::scheduler
