#include "loop/task_times.h"

#include <algorithm>

namespace muster {
namespace {

// One thread writes, so that a counter needs no atomic addition.
template <typename Number>
void AddTo(std::atomic<Number>& counter, Number amount) {
  counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
}

}  // namespace

void TaskTimes::Record(Duration took) {
  const auto* const bound = std::ranges::lower_bound(kBounds, took);
  AddTo<uint64_t>(counts_[static_cast<size_t>(bound - kBounds.begin())], 1);
  AddTo<int64_t>(sum_ns_, took.count());
  if (took.count() > longest_ns_.load(std::memory_order_relaxed)) {
    longest_ns_.store(took.count(), std::memory_order_relaxed);
  }
}

TaskTimes::Snapshot TaskTimes::Read() const {
  Snapshot snapshot;
  for (size_t i = 0; i < counts_.size(); ++i) {
    snapshot.counts[i] = counts_[i].load(std::memory_order_relaxed);
  }
  snapshot.sum = Duration(sum_ns_.load(std::memory_order_relaxed));
  return snapshot;
}

}  // namespace muster
