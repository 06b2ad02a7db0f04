#include "cluster/packing/cpu_threat.h"

#include <algorithm>

namespace muster::cluster {
namespace {

constexpr size_t kKindsLookedAt = 4;  // the most frequent ones
constexpr double kMostWeight = 0.3;
// Of the cpu that is free: what is wanted until the GPUs are full, from where the threat begins to
// where it is full.
constexpr double kBegins = 0.95;
constexpr double kIsFull = 1.0;

double CpuOf(const std::vector<AskKind>& kinds) {
  double cpu = 0;
  for (const AskKind& kind : kinds) cpu += kind.count * kind.ask.cpu_milli;
  return cpu;
}

}  // namespace

void CpuThreat::Assess(const FillPrices& prices,
                       const std::vector<std::pair<GpuState, double>>& states, const PodMix& mix) {
  double idle_milli = 0, free_cpu = 0, arrived_milli = 0;
  for (const auto& [state, nodes] : states) {
    idle_milli += nodes * state.IdleMilli();
    free_cpu += nodes * state.cpu_milli;
  }
  for (const AskKind& kind : mix.kinds()) arrived_milli += kind.count * kind.ask.TotalMilli();
  const double wanted = (CpuOf(mix.kinds()) + CpuOf(mix.kinds_without_gpus())) * idle_milli /
                        std::max(arrived_milli, 1.0);
  const double share = wanted / std::max(free_cpu, 1.0);
  weight_ = kMostWeight * std::clamp((share - kBegins) / (kIsFull - kBegins), 0.0, 1.0);

  std::vector<AskKind> kinds = mix.kinds_without_gpus();
  std::sort(kinds.begin(), kinds.end(), [](const AskKind& a, const AskKind& b) {
    return std::pair(-a.count, a.ask) < std::pair(-b.count, b.ask);
  });
  if (kinds.size() > kKindsLookedAt) kinds.resize(kKindsLookedAt);
  double total = 0;
  for (const AskKind& kind : kinds) total += kind.count;
  kinds_.clear();
  for (const AskKind& kind : kinds)
    kinds_.push_back({kind.count / total, kind.ask, prices.CostOf(kind.ask)});
}

double CpuThreat::ValueUnder(const FillPrices& prices, const GpuState& state) const {
  const PriceRow terms = prices.Terms(state);
  const double value = *std::min_element(terms.begin(), terms.end());
  if (state.gpus == 0 || state.free_milli[0] == 0) return value;
  double loss = 0;
  for (const Kind& kind : kinds_) {
    if (state.Takes(kind.ask))
      loss += kind.share * (value - prices.ValueAfter(state, terms, kind.ask, kind.cost, 0));
  }
  return value - weight_ * loss;
}

}  // namespace muster::cluster
