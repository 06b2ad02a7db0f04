// tests/simulation/chapters_story.h
//
// A random story by seed, of some of these chapters at once: claims and volumes, quotas,
// autoscalers, JobSets, finalizers that stay; with all faults of trouble.h. In the end all must
// rest as it was wanted, and what rests changes no more.
//
// Thread: one.

#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "simulation/counts.h"
#include "simulation/story.h"

namespace muster::simulation {

Outcome RunChaptersSeed(uint64_t seed, Counts& counts, bool verbose);

// All names that a whole run must count of these stories.
const std::vector<std::string_view>& ExpectedChapterCounts();

}  // namespace muster::simulation
