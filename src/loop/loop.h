// src/loop/loop.h
//
// Loop: where time passes and work runs. AsioLoop (production) runs on one real thread; SimLoop
// (tests) runs the same code on simulated time, in one deterministic order.
//
// Thread:     each Loop has one thread, "the loop thread". Post() may be called from any;
//             everything else only there.
// Invariants: tasks run one at a time, in the order posted; timers at or after their time, ties in
//             the order made. No task may hold the thread for more than 5 ms (`loop_lag_seconds`).

#pragma once

#include <cstdint>

#include "base/task.h"
#include "base/time.h"

namespace muster {

using TimerId = uint64_t;  // 0 is no timer

class Loop {
 public:
  virtual ~Loop() = default;

  // Runs `task` later on the loop thread. Any thread.
  virtual void Post(Task task) = 0;
  // Runs `task` once, `delay` from now (at once if <= 0). The loop thread.
  virtual TimerId After(Duration delay, Task task) = 0;
  // No effect if the timer already ran, was cancelled, or is 0.
  virtual void Cancel(TimerId timer) = 0;
  // Wall-clock time, for timestamps and deadlines.
  virtual Time Now() const = 0;
  virtual bool InThread() const = 0;
};

// Pool: runs pure or blocking work away from the loop. `work` runs on a pool thread; `done` then
// runs on the loop that was given. In simulation both run through SimLoop.
class Pool {
 public:
  virtual ~Pool() = default;
  virtual void Run(Task work, Loop& loop, Task done) = 0;
};

}  // namespace muster
