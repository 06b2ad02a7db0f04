// tests/durability/power_cuts.h
//
// Random load on a real store over a FaultDisk whose power fails again and again; after each cut
// the store is opened anew and compared with what it had promised:
//   - every acknowledged durable write is there, and so is every revision before it;
//   - nothing is there that was not asked for; the log is gapless and what a watch tells;
//   - what a reader or a watcher was shown as durable is there;
//   - no revision number ever comes back with another meaning.
//
// Thread: one; the same seed gives the same trace.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "simulation/counts.h"

namespace muster::durability {

// Wrong stores, which the test must find out.
enum class Mutant { kNone, kSynchronousOff, kReplyBeforeCommit };

struct Outcome {
  std::vector<std::string> violations;  // the first one ends the seed
  int cuts = 0;
  uint64_t trace = 0;
};

std::vector<std::string_view> PowerCutCounts();
Outcome RunPowerCuts(uint64_t seed, int cuts, Mutant mutant, simulation::Counts& counts);

}  // namespace muster::durability
