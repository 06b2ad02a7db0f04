#include "cluster/packing/packing_prices.h"

#include <algorithm>
#include <cmath>

namespace muster::cluster {
namespace {

constexpr double kMaxScarcity = 1.5;
constexpr double kScarcityWeight = 0.5;
constexpr double kLossSteps = 64;  // losses are compared in 1/64 milli-GPU: below is rounding

FillPrices PricesFor(const std::vector<GpuState>& nodes) {
  double cores = 0, gib = 0, gpus = 0;
  for (const GpuState& node : nodes) {
    if (node.gpus == 0) continue;
    cores += node.cpu_milli / 1000.0;
    gib += node.memory_mib / 1024.0;
    gpus += node.gpus;
  }
  return {cores, gib, gpus};
}

}  // namespace

PackingPrices::PackingPrices(const std::vector<GpuState>& nodes) : prices_(PricesFor(nodes)) {}

void PackingPrices::Solve(const std::vector<std::pair<GpuState, double>>& states,
                          const PodMix& mix) {
  prices_.Solve(states, mix);
  threat_.Assess(prices_, states, mix);
  PriceModels(states, mix);
}

PackingPrices::Room PackingPrices::RoomOf(const GpuState& state) const {
  Room room{prices_.Terms(state), 0};
  room.value = threat_.looms() ? threat_.ValueUnder(prices_, state)
                               : *std::min_element(room.terms.begin(), room.terms.end());
  return room;
}

double PackingPrices::Loss(const GpuState& state, const Room& room, const GpuAsk& ask,
                           const PriceRow& cost, int at) const {
  double after = 0;
  if (threat_.looms()) {
    GpuState left = state;
    left.Place(ask, at);
    after = threat_.ValueUnder(prices_, left);
  } else {
    after = prices_.ValueAfter(state, room.terms, ask, cost, at);
  }
  double loss = room.value - after;
  if (ask.gpus > 0) loss += model_price_[state.model] * ask.TotalMilli();
  return std::round(loss * kLossSteps) / kLossSteps;
}

// Of the pods that would fill what is idle, in the mix: how much those that name models want of
// each, as a share of what is idle of it.
void PackingPrices::PriceModels(const std::vector<std::pair<GpuState, double>>& states,
                                const PodMix& mix) {
  std::array<double, kMaxGpuModels> idle{}, wanted{};
  double idle_milli = 0, arrived = 0;
  for (const auto& [state, nodes] : states) {
    idle[state.model] += nodes * state.IdleMilli();
    idle_milli += nodes * state.IdleMilli();
  }
  for (const AskKind& kind : mix.kinds()) arrived += kind.count * kind.ask.TotalMilli();
  for (const AskKind& kind : mix.kinds()) {
    if (kind.ask.models == 0) continue;
    double idle_of_named = 0;
    for (int model = 0; model < kMaxGpuModels; ++model)
      if (kind.ask.models >> model & 1) idle_of_named += idle[model];
    const double milli = kind.count * kind.ask.TotalMilli() * idle_milli / arrived;
    for (int model = 0; model < kMaxGpuModels; ++model)
      if (kind.ask.models >> model & 1)
        wanted[model] += milli * idle[model] / std::max(idle_of_named, 1.0);
  }
  for (int model = 0; model < kMaxGpuModels; ++model) {
    model_price_[model] =
        kScarcityWeight * std::min(kMaxScarcity, wanted[model] / std::max(idle[model], 1.0));
  }
}

}  // namespace muster::cluster
