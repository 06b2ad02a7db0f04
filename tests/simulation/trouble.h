// tests/simulation/trouble.h
//
// Trouble: what befalls a world while a story is told: things at random moments, parts that crash,
// nodes that are lost.
//
// Life cycle: lives with its story. Thread: the simulation's.

#pragma once

#include <cstdint>
#include <functional>

#include "base/rng.h"
#include "simulation/counts.h"
#include "simulation/world.h"

namespace muster::simulation {

inline constexpr int kStoryLengthSeconds = 120;
// After the repairs: evictions take 300 s, the longest restart delay is 300 s, and after a clock
// that jumped back an hour deadlines may be so much later.
inline constexpr Duration kTimeToSettle = seconds(3600);

inline constexpr FaultRates kBadNetwork = {.late = 0.2,
                                           .timeout_before = 0.02,
                                           .timeout_after = 0.02,
                                           .conflict = 0.02,
                                           .watch_cut = 0.005,
                                           .watch_expired = 0.1,
                                           .watch_late = 0.05,
                                           .watch_twice = 0.02};

class Trouble {
 public:
  // REQUIRES: everything passed outlives it.
  Trouble(World& world, Rng& rng, Counts& counts) : world_(world), rng_(rng), counts_(counts) {}

  // `step`, from `least` to `most` times, whenever.
  void Sometimes(int64_t least, int64_t most, std::function<void()> step);
  void Perhaps(double probability, std::function<void()> step);
  Duration UpTo(int64_t most_ms) { return milliseconds(rng_.Between(0, most_ms)); }
  Duration Anytime() { return UpTo(kStoryLengthSeconds * 1000); }

  // Controllers, scheduler, server and nodes go, and come back.
  void PlanCrashes();
  // Parts that die at one of their writes.
  void PlanDeaths();

 private:
  void DieAtAWrite(CrashPoint& crash, int64_t latest);
  void HurtANode();

  World& world_;
  Rng& rng_;
  Counts& counts_;
};

}  // namespace muster::simulation
