// src/cluster/packing/pod_mix.h
//
// PodMix: which pods arrive, learned from those that have: a count for each kind of GpuAsk.
//
// Life cycle: lives as long as its learner; empty at first.
// Thread:     not shared.
// Invariants: at most kMaxAskKinds kinds, the rarest make room; what came long ago fades: every
//             kFadeAfter arrivals all counts are halved.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "cluster/packing/gpu_state.h"

namespace muster::cluster {

inline constexpr size_t kMaxAskKinds = 512;
inline constexpr double kFadeAfter = 50'000;  // arrivals

struct AskKind {
  GpuAsk ask;
  double count = 0;
};

class PodMix {
 public:
  // Asks without GPUs are arrivals, but no kind.
  void Add(const GpuAsk& ask);
  const std::vector<AskKind>& kinds() const { return kinds_; }
  uint64_t arrivals() const { return arrivals_; }

 private:
  void Fade();
  void DropRarest();

  std::map<GpuAsk, size_t> index_;
  std::vector<AskKind> kinds_;
  double weight_ = 0;
  uint64_t arrivals_ = 0;
};

}  // namespace muster::cluster
