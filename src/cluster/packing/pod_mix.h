// src/cluster/packing/pod_mix.h
//
// PodMix: which pods arrive, learned from those that have: a count for each kind of GpuAsk, those
// with GPUs and those without apart.
//
// Life cycle: lives as long as its learner; empty at first.
// Thread:     not shared.
// Invariants: at most kMaxAskKinds kinds of either, the rarest make room; what came long ago fades:
//             every kFadeAfter that arrived all counts are halved.

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
  // For a mix that is learned as pods come.
  void Arrived(const GpuAsk& ask);
  // For a mix of what there is: nothing fades.
  void Add(const GpuAsk& ask, double count = 1);
  const std::vector<AskKind>& kinds() const { return with_gpus_.kinds; }
  const std::vector<AskKind>& kinds_without_gpus() const { return without_gpus_.kinds; }
  uint64_t arrivals() const { return arrivals_; }

 private:
  struct Counts {
    std::map<GpuAsk, size_t> index;
    std::vector<AskKind> kinds;
    void Add(const GpuAsk& ask, double count);
    void DropRarest();
  };
  void Fade();

  Counts with_gpus_, without_gpus_;
  double weight_ = 0;
  uint64_t arrivals_ = 0;
};

}  // namespace muster::cluster
