// tests/simulation/story.h
//
// A random story by seed: users who make, change and delete jobs; a network that fails, parts that
// crash, a store that loses what it had not committed, nodes that lose power, a clock that jumps.
// After a while everything is repaired, and then all must come to rest in a right state.
//
// Thread: one.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "simulation/counts.h"

namespace muster::simulation {

struct Outcome {
  uint64_t trace_hash = 0;
  int64_t revisions = 0;
  uint64_t steps = 0;
  std::vector<std::string> violations;
};

// `verbose` prints the story and every change.
Outcome RunSeed(uint64_t seed, Counts& counts, bool verbose);

// All names that a whole run must count.
const std::vector<std::string_view>& ExpectedCounts();

}  // namespace muster::simulation
