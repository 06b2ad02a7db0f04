// src/loop/task_times.h
//
// How long the tasks of one thread took (a loop's, a store's commits): a histogram with bounds that
// fit Prometheus, and the longest since it was last asked for.
//
// Thread:     Record() on one thread; the rest on any.
// Invariants: nothing but counting: a task pays two reads of the clock and two additions.

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/time.h"

namespace muster {

class TaskTimes {
 public:
  // Upper bounds of the buckets; one more bucket has what is longer.
  static constexpr std::array<Duration, 10> kBounds = {
      microseconds(100), microseconds(500), milliseconds(1),  milliseconds(2),   milliseconds(5),
      milliseconds(10),  milliseconds(20),  milliseconds(50), milliseconds(200), seconds(1)};

  struct Snapshot {
    std::array<uint64_t, kBounds.size() + 1> counts{};  // not cumulative
    Duration sum{0};
  };

  void Record(Duration took);
  Snapshot Read() const;
  Duration TakeLongest() { return Duration(longest_ns_.exchange(0)); }

 private:
  std::array<std::atomic<uint64_t>, kBounds.size() + 1> counts_{};
  std::atomic<int64_t> sum_ns_{0};
  std::atomic<int64_t> longest_ns_{0};
};

}  // namespace muster
