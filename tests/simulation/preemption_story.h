// tests/simulation/preemption_story.h
//
// A random story by seed about a cluster that is too small: pods, gangs and jobs of several
// priorities, some of them protected by budgets, while nodes are lost and parts crash. In the end
// whoever matters most must have its room, and nobody went in vain (preemption_oracle.h).
//
// Thread: one.

#pragma once

#include <cstdint>

#include "simulation/counts.h"
#include "simulation/story.h"

namespace muster::simulation {

// `verbose` prints the story and every change.
Outcome RunPreemptionSeed(uint64_t seed, Counts& counts, bool verbose);

}  // namespace muster::simulation
