// src/base/bounded_seconds.h
//
// Seconds as somebody wrote them into an object. As nanoseconds three centuries are too many, and a
// time in the future would be one in the past: what is meant to end never would end at once.
//
// Thread: any (pure functions).

#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/time.h"

namespace muster {

// 68 years: more than that nobody waits.
inline constexpr int64_t kMaxWrittenSeconds = std::numeric_limits<int32_t>::max();

constexpr int64_t BoundSeconds(int64_t count) {
  return std::clamp<int64_t>(count, -kMaxWrittenSeconds, kMaxWrittenSeconds);
}

constexpr Duration BoundedSeconds(int64_t count) { return seconds(BoundSeconds(count)); }

}  // namespace muster
