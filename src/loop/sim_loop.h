// src/loop/sim_loop.h
//
// SimLoop: simulated time. Nothing happens until the test runs it; then everything happens in one
// order that depends on nothing but the program and its seeds.
//
// Thread:     the one that calls Run*(). Post() from elsewhere is allowed (store writer threads in
//             tests) but then the order is no longer deterministic.
// Invariants: tasks in the order (time, sequence number); Steady() never goes back, and timers go
//             by it; Now() is Steady() plus what JumpClock() added.

#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "loop/loop.h"

namespace muster {

class SimLoop final : public Loop {
 public:
  // 2026-01-01T00:00:00Z unless said otherwise.
  explicit SimLoop(Time start = Time(seconds(1767225600)));

  void Post(Task task) override;
  TimerId After(Duration delay, Task task) override;
  void Cancel(TimerId timer) override;
  Time Now() const override;
  bool InThread() const override { return true; }

  // The wall clock is set; timers do not notice, as in production.
  void JumpClock(Duration by);
  Time Steady() const;

  // Runs the next task, moving time forward to it; false if there is none.
  bool Step();
  // Runs what is due now, timers in the future stay; returns how many tasks ran. `limit` bounds
  // endless posting.
  size_t RunReady(size_t limit = 1'000'000);
  // Runs everything due within `duration` and leaves the time at its end.
  void RunFor(Duration duration);
  // Runs until `done` holds or simulated time passes `deadline`; returns whether it holds.
  bool RunUntil(Function<bool()> done, Duration deadline);

  // When the next task is due, on the steady clock; nullopt if nothing waits.
  std::optional<Time> NextDue() const;
  uint64_t steps() const { return steps_; }

 private:
  using Slot = std::pair<Time, TimerId>;

  mutable std::mutex mutex_;  // guards all below, for Post() from other threads
  Time now_;                  // steady
  Duration jumped_{};
  TimerId next_id_ = 1;
  std::map<Slot, Task> queue_;
  std::unordered_map<TimerId, Time> due_;
  uint64_t steps_ = 0;
};

// A Pool that runs the work as a task of the loop itself: deterministic.
class SimPool final : public Pool {
 public:
  void Run(Task work, Loop& loop, Task done) override;
};

}  // namespace muster
