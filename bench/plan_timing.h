// bench/plan_timing.h
//
// How long work takes at best: the machine is shared, and nothing makes a round faster than it is.

#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "base/check.h"
#include "base/time.h"
#include "scheduler/planner.h"
#include "scheduler/test_cluster.h"

namespace muster::scheduler {

inline double SecondsSince(Duration start) {
  return std::chrono::duration<double>(RealClock().Monotonic() - start).count();
}

template <class Work>
double BestSeconds(int rounds, Work work) {
  double best = 1e9;
  for (int round = 0; round < rounds; ++round) {
    const Duration start = RealClock().Monotonic();
    work();
    best = std::min(best, SecondsSince(start));
  }
  return best;
}

// Of a plan for all that waits, which must place `pods`.
inline double PlanSeconds(const TestCluster& cluster, size_t pods, int rounds,
                          const PlannerConfig& config = {}) {
  const Queue queue = cluster.MakeQueue();
  return BestSeconds(rounds, [&] {
    const PlanResult result = Plan(cluster.cache.snapshot(), queue, config, Time{});
    size_t placed = 0;
    for (const UnitPlan& unit : result.units) placed += unit.assignments.size();
    CHECK(placed == pods);
  });
}

}  // namespace muster::scheduler
