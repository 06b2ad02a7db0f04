// tests/simulation/workload_story.h
//
// A random story about workloads by seed: users who make, scale, change, roll back, pause, orphan
// and delete ReplicaSets, Deployments, StatefulSets, DaemonSets, Jobs and CronJobs, drain and taint
// nodes and delete pods; all faults of trouble.h. In the end all must rest as they were wanted.
//
// Thread: one.

#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "simulation/counts.h"
#include "simulation/story.h"

namespace muster::simulation {

Outcome RunWorkloadSeed(uint64_t seed, Counts& counts, bool verbose);

// All names that a whole run must count of these stories.
const std::vector<std::string_view>& ExpectedWorkloadCounts();

}  // namespace muster::simulation
