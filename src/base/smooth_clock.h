// src/base/smooth_clock.h
//
// SmoothClock: wall-clock time that nobody can set. Deadlines, back-offs and leases are instants of
// the wall clock all over the program; if they jumped with it, an hour forward would evict the pods
// of every node and an hour back would stop every retry. So when the machine's clock is set, this
// one goes at half or at one and a half speed until it agrees again: it never goes back, and what
// was to last ten seconds lasts seven to twenty. Only a difference beyond kMaxSmoothedJump, a clock
// that was never set, is followed at once.
//
// Thread: one owner.

#pragma once

#include "base/time.h"

namespace muster {

inline constexpr Duration kMaxSmoothedJump = hours(24);

class SmoothClock {
 public:
  // What time it is when the machine's two clocks say this.
  Time Read(Time wall, Duration monotonic);

 private:
  bool started_ = false;
  Duration last_monotonic_{0};
  Time now_;
};

}  // namespace muster
