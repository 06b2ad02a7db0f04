// src/scheduler/reservations.h
//
// Reservations: the room that is being made for nominated pods (status.nominatedNodeName), kept
// from units of lower or equal priority: on the working copy a nominated pod counts as placed while
// the plan is at such a unit.
//
// Only amounts, host ports and the pod's own anti-affinity count. Selectors do not find it: nobody
// is placed next to a pod that is not there yet.
//
// Life cycle: made at the start of a plan, for its queue and working copy. A copy that is made when
//             the plan is at no unit goes on by itself.
// Thread:     any, not shared.
// Invariants: while the plan is at a unit, exactly these are placed: nominated pods of other units
//             with at least its priority that the plan has placed nowhere, on nodes that could take
//             them if they were empty.

#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "cluster/snapshot.h"
#include "scheduler/node_finder.h"
#include "scheduler/queue.h"

namespace muster::scheduler {

class Reservations {
 public:
  // REQUIRES: both outlive it.
  Reservations(const Queue& queue, NodeFinder& finder);

  // The plan is at this unit from now on: position in the queue.
  void At(size_t unit);
  // The pod has its place (position in Unit::pods). REQUIRES: the plan is at its unit. True if it
  // was nominated elsewhere: room became free that units before it were refused.
  bool Placed(size_t pod, cluster::NodeIndex node);
  // The plan is at no unit: nothing is held.
  void Leave();

 private:
  struct Entry {
    size_t unit = 0, pod = 0;
    int64_t priority = 0;
    cluster::NodeIndex node = cluster::kNoIndex;
    cluster::PlacementIndex at = cluster::kNoIndex;  // kNoIndex: not placed now
    bool over = false;
  };

  void Hold(Entry& entry);
  void Release(Entry& entry);

  const Queue& queue_;
  NodeFinder& finder_;
  std::vector<Entry> entries_;  // from high to low priority
  std::map<size_t, std::vector<size_t>> by_unit_;
  size_t level_ = 0;  // entries before it have at least the priority of the unit
  size_t unit_ = SIZE_MAX;
};

}  // namespace muster::scheduler
