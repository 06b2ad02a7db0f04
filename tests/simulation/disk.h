// tests/simulation/disk.h
//
// Disk: the log of a store that outlives it, and a Store over it that can be killed. What was
// appended is there after the crash; what was on its way is lost, and nobody hears of it.
//
//   before   the commit that holds the k-th write does not happen
//   after    it happens, but no reader, watcher or client hears of it
//
// Life cycle: one Disk per simulation; a store may be opened on it again and again, one at a time.
// Thread:     the simulation's.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "base/rng.h"
#include "loop/loop.h"
#include "simulation/crash_point.h"
#include "store/backend.h"
#include "store/store.h"

namespace muster::simulation {

struct Disk {
  std::map<store::Revision, store::LogRecord> log;
  store::Revision last = 0;
  store::Revision compacted = 0;
  uint64_t lost = 0;            // records that no commit reached
  uint64_t generation = 0;      // of the store that may write; others are dead
  CrashPoint* crash = nullptr;  // counts the records that are somebody's state
};

// The store that was open before is dead from now on: it commits and reports nothing more.
// A commit takes up to `max_commit_time`.
std::unique_ptr<store::Store> OpenStore(Loop& loop, Disk& disk, store::Store::Decorator decorator,
                                        Rng rng, Duration max_commit_time);
// Kills the store that is open. Destroy it afterwards.
void Kill(Disk& disk);

}  // namespace muster::simulation
