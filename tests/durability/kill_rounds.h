// tests/durability/kill_rounds.h
//
// A process with a store on real files, its writer thread and random load, killed with SIGKILL at a
// random moment, again and again on the same files. It tells its parent through a pipe what was
// acknowledged; after each kill the parent opens the store and looks for that.
//
// Thread: the parent has one; the child has the store's writer besides.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulation/counts.h"

namespace muster::durability {

std::vector<std::string_view> KillRoundCounts();
// Returns the violations.
std::vector<std::string> RunKillRounds(uint64_t seed, int rounds, simulation::Counts& counts);

}  // namespace muster::durability
