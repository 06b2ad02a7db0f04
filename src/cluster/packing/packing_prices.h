// src/cluster/packing/packing_prices.h
//
// PackingPrices: what a pod on a node costs all the pods to come, in milli-GPU.
//
//   Loss(pod, node) = value of the node's room before - after (fill_prices.h; where cpu is short,
//                     cpu_threat.h) + the price of the node's model x the pod's milli-GPU
//
// The price of a model is what of it the pods that name models are expected to need, as a share of
// what is idle of it: who names none leaves it to them.
//
// Life cycle: made for one cluster, solved again as the mix and the room change; a copy starts from
//             the former solution.
// Thread:     constant functions on any; Solve() alone.

#pragma once

#include <array>
#include <utility>
#include <vector>

#include "cluster/packing/cpu_threat.h"
#include "cluster/packing/fill_prices.h"
#include "cluster/packing/gpu_state.h"
#include "cluster/packing/pod_mix.h"

namespace muster::cluster {

class PackingPrices {
 public:
  // The room of a node, as far as it is the same for all asks.
  struct Room {
    PriceRow terms;
    double value = 0;
  };

  // `nodes`: all of them, empty. REQUIRES: at least one has GPUs, cpu and memory.
  explicit PackingPrices(const std::vector<GpuState>& nodes);

  // `states`: as they are now, with how many nodes have each.
  // REQUIRES: the mix has kinds with GPUs.
  void Solve(const std::vector<std::pair<GpuState, double>>& states, const PodMix& mix);
  bool solved() const { return prices_.solved(); }

  // All below: REQUIRES solved().
  Room RoomOf(const GpuState& state) const;
  PriceRow CostOf(const GpuAsk& ask) const { return prices_.CostOf(ask); }
  // Rounded, so that losses that differ by arithmetic alone are equal. `room` and `cost` as above.
  // REQUIRES: state.Takes(ask), with the GPU `at` for a share.
  double Loss(const GpuState& state, const Room& room, const GpuAsk& ask, const PriceRow& cost,
              int at) const;

 private:
  void PriceModels(const std::vector<std::pair<GpuState, double>>& states, const PodMix& mix);

  FillPrices prices_;
  CpuThreat threat_;
  std::array<double, kMaxGpuModels> model_price_{};
};

}  // namespace muster::cluster
