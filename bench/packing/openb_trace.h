// bench/packing/openb_trace.h
//
// The node and pod lists of openb (alibaba/clusterdata, cluster-trace-gpu-v2023), and the arrivals
// that the packing experiment of FGD (Weng et al., ATC 2023) makes of them with a seed.
//
// Thread: any (values).

#pragma once

#include <string>
#include <vector>

#include "base/rng.h"
#include "base/status.h"
#include "cluster/packing/gpu_state.h"

namespace muster::bench {

struct OpenbTrace {
  std::vector<cluster::GpuState> nodes;  // in the order of the file
  std::vector<cluster::GpuAsk> pods;
  int64_t total_milli = 0;  // of all GPUs
};

// Errors name the file, the line and what was expected there.
Result<OpenbTrace> ReadOpenbTrace(const std::string& node_file, const std::string& pod_file);

// The pods in the order of their arrival, 1.3 times what the GPUs hold: all in random order, then
// pods drawn with replacement; where the list is longer than that, random ones are left out.
std::vector<cluster::GpuAsk> MakeArrivals(const OpenbTrace& trace, Rng& rng);

template <class T>
void Shuffle(std::vector<T>& items, Rng& rng) {
  for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[rng.Below(i)]);
}

}  // namespace muster::bench
