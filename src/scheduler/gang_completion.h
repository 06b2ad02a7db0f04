// src/scheduler/gang_completion.h
//
// Completes gangs of which a part is bound, all of them together.
//
// Several bindings are under way when a scheduler dies, and any of them may have been done: then
// several gangs are bound in part, and the places that were meant for the rest are known to nobody.
// They are there, but the first gang to be completed may take what only suits another one. So if
// one after the other does not complete all that can be, a place for all of them is searched at
// once (gang_search.h).
//
// Life cycle: a function on a NodeFinder, which holds the working copy.
// Thread:     any, not shared.
// Invariants: the same inputs give the same placements.

#pragma once

#include <vector>

#include "scheduler/gang_planner.h"
#include "scheduler/node_finder.h"
#include "scheduler/queue.h"

namespace muster::scheduler {

// One attempt for each unit, all of them left placed.
// REQUIRES: IsCompleting() of each.
std::vector<GangAttempt> CompleteGangs(const std::vector<const Unit*>& units, NodeFinder& finder,
                                       SearchBudget& budget);

}  // namespace muster::scheduler
