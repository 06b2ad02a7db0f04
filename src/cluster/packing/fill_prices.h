// src/cluster/packing/fill_prices.h
//
// FillPrices: what the room of a node is worth, given the mix of pods that arrive.
//
// The question behind it: into the free room of the whole cluster, how many more times does the
// mix fit, when every kind of pod is to get in in its proportion? That is a maximum concurrent
// flow over all ways to fill a node. Its dual gives each kind k a value v_k (milli-GPU; what is
// hard to place is worth more than its size), and each node the most value that still fits:
//
//   Value(s) = max sum n_k v_k  over the multisets n of pods that fit together into s
//   v minimises  sum_s Value(s)  subject to  sum_k arrivals_k v_k = sum_k arrivals_k milli_k
//
// A pod goes where it takes away the least value. Value() is the Lagrangian relaxation of that
// packing in cpu and memory, with the GPUs kept apart:
//
//   Value(s) = min over (c, m) of
//              c cpu_s + m memory_s + Whole[w](c, m) + sum_g Share[free_g](c, m)
//
// where Share[r] is the best filling of one GPU with r milli-GPU free by shares or by one whole
// pod, Whole[w] that of w free GPUs by any pods, each pod worth v_k - c cpu_k - m memory_k, and
// (c, m) runs over a grid of kGridSize points that is relative to what the cluster offers per GPU.
// v is found by multiplicative updates (as Garg and Koenemann 2007 for fractional packing),
// warm-started, averaged over their second half.
//
// Life cycle: made for one cluster, solved again as the mix and the room change.
// Thread:     not shared.
// Cost:       Solve: kIterations x (kinds x 100 x kGridSize + states x GPUs x kGridSize) steps.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cluster/packing/gpu_state.h"
#include "cluster/packing/pod_mix.h"

namespace muster::cluster {

inline constexpr int kCpuPrices = 16;
inline constexpr int kMemoryPrices = 6;
inline constexpr int kGridSize = kCpuPrices * kMemoryPrices;
inline constexpr int kStepMilli = 10;  // free milli-GPU is looked at in steps of this size
inline constexpr int kSteps = kWholeGpu / kStepMilli;

// One number for each pair of prices, in milli-GPU.
using PriceRow = std::array<float, kGridSize>;

class FillPrices {
 public:
  // What the cluster offers, for the scale of prices. REQUIRES: all above 0.
  FillPrices(double cores, double memory_gib, double gpus);

  // `states`: the room of all nodes, with how many nodes have it.
  void Solve(const std::vector<std::pair<GpuState, double>>& states, const PodMix& mix);
  bool solved() const { return solved_; }

  // The sum under the minimum, and the minimum.
  PriceRow Terms(const GpuState& state) const;
  double Value(const GpuState& state) const;
  // What the asked-for cpu and memory cost.
  PriceRow CostOf(const GpuAsk& ask) const;
  // Value of the node after `ask` took the GPU `at`; `terms` and `cost` as above.
  double ValueAfter(const GpuState& state, const PriceRow& terms, const GpuAsk& ask,
                    const PriceRow& cost, int at) const;

 private:
  static constexpr int32_t kNothing = -1;  // nothing more fits
  static constexpr int32_t kLess = -2;     // as with one step (one whole GPU) less

  struct Choice {                         // of the best filling
    std::array<int32_t, kGridSize> kind;  // as wide as a float, for SIMD
  };
  // Of the models that the same kinds accept.
  struct Tables {
    std::array<PriceRow, kSteps + 1> share;
    std::array<Choice, kSteps + 1> share_choice;
    std::array<PriceRow, kMaxGpusPerNode + 1> whole;
    std::array<Choice, kMaxGpusPerNode + 1> whole_choice;
  };

  static int Step(int milli) { return milli / kStepMilli; }
  const Tables& Of(const GpuState& state) const { return tables_[table_of_model_[state.model]]; }
  void TakeOver(const PodMix& mix);
  void AssignTables();
  // What several kinds of one size come to: the best at each point. Sizes are unique.
  struct Size {
    int size = 0;
    PriceRow net;
    Choice choice;
  };
  std::vector<Size> SizesFor(uint32_t model_bit, bool several_gpus) const;
  static void FillRows(const std::vector<Size>& sizes, const PriceRow* one_more,
                       std::span<PriceRow> rows, std::span<Choice> choices);
  void Rebuild();
  void CountUses(const GpuState& state, double nodes, std::vector<double>& uses) const;
  void CountUses(const GpuState& state, int point, double weight, std::vector<double>& uses) const;
  void CountShareUses(const Tables& tables, int step, int point, double weight,
                      std::vector<double>& uses) const;
  void Update(const std::vector<double>& uses, double rate);

  bool solved_ = false;
  PriceRow core_price_{};  // by grid point, milli-GPU per core
  PriceRow gib_price_{};
  std::vector<AskKind> kinds_;
  std::vector<double> values_;  // of kinds_
  std::vector<PriceRow> net_;   // of kinds_: value less the cost of cpu and memory
  std::array<uint8_t, kMaxGpuModels> table_of_model_{};
  std::vector<Tables> tables_;
  std::vector<uint32_t> table_model_bit_;
};

}  // namespace muster::cluster
