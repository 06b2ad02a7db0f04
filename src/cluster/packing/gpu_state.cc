#include "cluster/packing/gpu_state.h"

#include <algorithm>
#include <functional>

#include "base/check.h"

namespace muster::cluster {

void GpuState::Place(const GpuAsk& ask, int at) {
  CHECK(Takes(ask));
  cpu_milli -= ask.cpu_milli;
  memory_mib -= ask.memory_mib;
  if (ask.IsShare()) {
    CHECK(at < gpus && free_milli[at] >= ask.gpu_milli);
    free_milli[at] = static_cast<int16_t>(free_milli[at] - ask.gpu_milli);
    for (int i = at; i + 1 < gpus && free_milli[i] < free_milli[i + 1]; ++i)
      std::swap(free_milli[i], free_milli[i + 1]);
    return;
  }
  for (int i = 0; i < ask.gpus; ++i)
    free_milli[i] = static_cast<int16_t>(free_milli[i] - ask.gpu_milli);
  std::sort(free_milli.begin(), free_milli.begin() + gpus, std::greater<>());
}

size_t GpuStateHash::operator()(const GpuState& state) const {
  constexpr uint64_t kMix = 0x9E3779B97F4A7C15;
  uint64_t hash = (static_cast<uint64_t>(state.cpu_milli) << 32 | state.memory_mib) * kMix;
  for (int i = 0; i < state.gpus; ++i)
    hash = (hash ^ static_cast<uint64_t>(state.free_milli[i])) * 0x100000001B3;
  hash ^= static_cast<uint64_t>(state.model) << 56 ^ static_cast<uint64_t>(state.gpus) << 48;
  hash *= kMix;
  return hash ^ hash >> 29;
}

}  // namespace muster::cluster
