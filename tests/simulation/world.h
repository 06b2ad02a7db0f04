// tests/simulation/world.h
//
// World: one seed's cluster and its story. A memory store, the real API server, scheduler and
// controllers, fake machines with agents; users who make, change and delete jobs; a network that
// fails, parts that crash, nodes that lose power. After kStoryLength everything is repaired, and
// then all must come to rest in a right state.
//
// Thread: one.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "simulation/counts.h"

namespace muster::simulation {

inline constexpr int kStoryLengthSeconds = 120;
// After the repairs: evictions take 300 s, the longest restart delay is 300 s.
inline constexpr int kTimeToSettleSeconds = 3600;

struct Outcome {
  uint64_t trace_hash = 0;
  uint64_t revisions = 0;
  uint64_t steps = 0;
  std::vector<std::string> violations;
};

// `verbose` prints the story.
Outcome RunSeed(uint64_t seed, Counts& counts, bool verbose);

// All names that a whole run must count.
const std::vector<std::string_view>& ExpectedCounts();

}  // namespace muster::simulation
