// src/cluster/packing/cpu_threat.h
//
// CpuThreat: where cpu is short, pods without GPUs come and take it from beside idle GPUs, which
// then stay idle. Room of which they cannot take the cpu (too little for them, enough for pods with
// GPUs) is worth more than other room.
//
//   ValueUnder(s) = Value(s) - weight x mean over kinds k that fit of (Value(s) - Value(s - k))
//
// The weight is 0 while what free cpu there is suffices for all that come until the GPUs are full.
//
// Life cycle: assessed anew with each solution of the prices.
// Thread:     not shared.

#pragma once

#include <utility>
#include <vector>

#include "cluster/packing/fill_prices.h"
#include "cluster/packing/gpu_state.h"
#include "cluster/packing/pod_mix.h"

namespace muster::cluster {

class CpuThreat {
 public:
  // `states`: as for FillPrices::Solve().
  void Assess(const FillPrices& prices, const std::vector<std::pair<GpuState, double>>& states,
              const PodMix& mix);
  bool looms() const { return weight_ > 0; }
  double ValueUnder(const FillPrices& prices, const GpuState& state) const;

 private:
  struct Kind {
    double share = 0;
    GpuAsk ask;
    PriceRow cost;
  };
  double weight_ = 0;
  std::vector<Kind> kinds_;
};

}  // namespace muster::cluster
