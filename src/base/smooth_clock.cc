#include "base/smooth_clock.h"

#include <algorithm>

namespace muster {

Time SmoothClock::Read(Time wall, Duration monotonic) {
  const Duration passed = std::max(monotonic - last_monotonic_, Duration(0));
  last_monotonic_ = monotonic;
  now_ += passed;
  const Duration behind = wall - now_;
  if (!started_ || behind > kMaxSmoothedJump || behind < -kMaxSmoothedJump) {
    started_ = true;
    return now_ = wall;
  }
  return now_ += std::clamp(behind, -passed / 2, passed / 2);
}

}  // namespace muster
