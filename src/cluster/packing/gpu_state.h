// src/cluster/packing/gpu_state.h
//
// What packing looks at: the room of one node (GpuState) and what one pod wants of it (GpuAsk).
// GPUs are counted in thousandths, so that pods may share one.
//
// Thread: any (values).
// Invariants: the GPUs of a GpuState are sorted, the emptiest first, so that nodes that differ in
//             the order of their GPUs alone are equal.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace muster::cluster {

inline constexpr int kWholeGpu = 1000;      // milli-GPU
inline constexpr int kMaxGpusPerNode = 16;  // that packing looks at
inline constexpr int kMaxGpuModels = 31;    // distinct models; further ones count as the last

struct GpuAsk {
  int32_t cpu_milli = 0;
  int32_t memory_mib = 0;
  int16_t gpus = 0;
  int16_t gpu_milli = 0;  // of each of them; below kWholeGpu only where gpus == 1
  uint32_t models = 0;    // bit i: model i will do; 0: any
  int32_t TotalMilli() const { return gpus * gpu_milli; }
  bool IsShare() const { return gpus == 1 && gpu_milli < kWholeGpu; }
  auto operator<=>(const GpuAsk&) const = default;
};

struct GpuState {
  int32_t cpu_milli = 0;
  int32_t memory_mib = 0;
  uint8_t model = 0;
  uint8_t gpus = 0;
  std::array<int16_t, kMaxGpusPerNode> free_milli{};  // of the first `gpus`

  int32_t IdleMilli() const {
    int32_t sum = 0;
    for (int i = 0; i < gpus; ++i) sum += free_milli[i];
    return sum;
  }
  int WholeGpus() const {
    int count = 0;
    while (count < gpus && free_milli[count] == kWholeGpu) ++count;
    return count;
  }
  bool Takes(const GpuAsk& ask) const {
    if (ask.cpu_milli > cpu_milli || ask.memory_mib > memory_mib) return false;
    if (ask.gpus == 0) return true;
    if (ask.models != 0 && (ask.models >> model & 1) == 0) return false;
    return ask.gpus <= gpus && free_milli[ask.gpus - 1] >= ask.gpu_milli;
  }
  // The first of a share's GPUs is the one at `at`. REQUIRES: Takes(ask), free_milli[at] suffices.
  void Place(const GpuAsk& ask, int at);

  auto operator<=>(const GpuState&) const = default;
};

struct GpuStateHash {
  size_t operator()(const GpuState& state) const;
};

// Calls visit(at) for each GPU that a share may get, of equal ones the last; for any other ask
// once, with 0. REQUIRES: state.Takes(ask).
template <class Visit>
void ForEachChoice(const GpuState& state, const GpuAsk& ask, Visit visit) {
  if (!ask.IsShare()) return visit(0);
  for (int i = 0; i < state.gpus && state.free_milli[i] >= ask.gpu_milli; ++i) {
    const bool same_follows = i + 1 < state.gpus && state.free_milli[i + 1] == state.free_milli[i];
    if (!same_follows) visit(i);
  }
}

}  // namespace muster::cluster
