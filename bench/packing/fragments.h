// bench/packing/fragments.h
//
// Fragments: FGD's measure (Weng et al., ATC 2023, section 4): the idle GPU of a node that a pod of
// the mix is expected not to be able to use. The mix are the most frequent kinds of pods, by cpu,
// GPUs and models, that make up 95 % of a list.
//
// Life cycle: made from the whole list, known in advance. Thread: not shared.

#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "cluster/packing/gpu_state.h"

namespace muster::bench {

class Fragments {
 public:
  explicit Fragments(const std::vector<cluster::GpuAsk>& pods);
  // In milli-GPU.
  double Of(const cluster::GpuState& node);

 private:
  std::vector<std::pair<double, cluster::GpuAsk>> typical_;  // share of the mix, kind
  std::unordered_map<cluster::GpuState, double, cluster::GpuStateHash> known_;
};

}  // namespace muster::bench
