// src/scheduler/unblocking.h
//
// Unblocking: whose end would let a unit in. Every answer was tried: without these jobs the unit
// fits, and without all but one of them it does not.
//
// Tried in this order: one job, those that hold least first; for gangs, the largest jobs together;
// then node by node the fewest jobs that keep the next pod away, by amounts, host ports,
// anti-affinity or spread.
//
// Life cycle: made for one working copy; used for units that do not fit it.
// Thread:     any, not shared.
// Invariants: the working copy is as before after every call, slot by slot. An answer may hold a
//             job too many only if the bound on work was reached while it was being made smaller.
// Cost:       what `max_work` allows, in pods looked at.

#pragma once

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "cluster/snapshot.h"
#include "scheduler/gang_search.h"
#include "scheduler/node_finder.h"
#include "scheduler/queue.h"

namespace muster::scheduler {

// Holders whose end is tried, per unit; those with the most come first.
inline constexpr size_t kMaxHoldersTried = 32;
// Nodes on which the next pod of a unit is tried, those with the fewest holders to end first.
inline constexpr size_t kMaxNodesTried = 16;

class Unblocking {
 public:
  using Holders = std::vector<cluster::HolderIndex>;

  Unblocking(NodeFinder& finder, size_t max_work) : finder_(finder), work_left_(max_work) {}

  // `holding`: who holds the scarce resource where the unit could go, largest first; `missing`: how
  // much of it must be freed at least. Empty if nothing was found.
  // REQUIRES: the unit does not fit; `pod`, a position in its pods, is one that found no node.
  Holders Search(const Unit& unit, size_t pod,
                 const std::vector<std::pair<cluster::HolderIndex, int64_t>>& holding,
                 int64_t missing);

 private:
  // Takes the pods of holders off the working copy while it lives.
  class Ended;

  bool FitsWithout(const Unit& unit, const Holders& holders);
  Holders SearchOne(const Unit& unit, const Holders& candidates);
  Holders SearchLargest(const Unit& unit,
                        const std::vector<std::pair<cluster::HolderIndex, int64_t>>& holding,
                        int64_t missing);
  Holders SearchByNode(const Unit& unit);
  // The fewest holders without which some node takes the pod.
  Holders FewestFor(const Unit& unit, size_t pod);
  Holders Shrink(const Unit& unit, Holders holders);
  bool Spend(size_t pods);

  NodeFinder& finder_;
  size_t work_left_;
  SearchBudget search_;  // for all tries together
};

}  // namespace muster::scheduler
