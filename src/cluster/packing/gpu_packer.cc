#include "cluster/packing/gpu_packer.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace muster::cluster {
namespace {

constexpr uint64_t kFirstSolution = 4;  // arrivals
constexpr uint64_t kLeastBetweenSolutions = 64;
constexpr double kMostBetweenSolutions = 1500;  // while the cluster is empty, a tenth when full
constexpr double kMaxScarcity = 1.5;
constexpr double kScarcityWeight = 0.5;
constexpr double kLossSteps = 64;  // losses are compared in 1/64 milli-GPU: below is rounding
constexpr size_t kMaxKnownAsks = 4096;

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

GpuPacker::GpuPacker(const std::vector<GpuState>& nodes)
    : prices_(PricesFor(nodes)), solve_at_(kFirstSolution) {
  for (const GpuState& node : nodes) {
    slot_of_.push_back(SlotFor(node));
    total_milli_ += node.IdleMilli();
  }
}

uint32_t GpuPacker::SlotFor(const GpuState& state) {
  const auto [at, is_new] = slot_by_state_.try_emplace(state, 0);
  if (is_new) {
    if (empty_slots_.empty()) {
      at->second = static_cast<uint32_t>(slots_.size());
      slots_.emplace_back();
    } else {
      at->second = empty_slots_.back();
      empty_slots_.pop_back();
    }
    Slot& slot = slots_[at->second];
    slot.state = state;
    slot.stamp = next_stamp_++;
    slot.has_terms = false;
    slot.idle_milli = state.IdleMilli();
  }
  ++slots_[at->second].nodes;
  return at->second;
}

void GpuPacker::Leave(uint32_t index) {
  Slot& slot = slots_[index];
  if (--slot.nodes > 0) return;
  slot_by_state_.erase(slot.state);
  empty_slots_.push_back(index);
}

GpuPacker::Ask& GpuPacker::Known(const GpuAsk& ask) {
  if (asks_.size() >= kMaxKnownAsks && !ask_index_.contains(ask)) {
    asks_.clear();
    ask_index_.clear();
  }
  const auto [at, is_new] = ask_index_.try_emplace(ask, asks_.size());
  if (is_new) asks_.push_back({ask, 0, {}, {}});
  return asks_[at->second];
}

double GpuPacker::ValueAfter(const Slot& slot, const Ask& ask, int gpu) const {
  if (!threat_.looms()) return prices_.ValueAfter(slot.state, slot.terms, ask.ask, ask.cost, gpu);
  GpuState left = slot.state;
  left.Place(ask.ask, gpu);
  return threat_.ValueUnder(prices_, left);
}

const GpuPacker::Loss& GpuPacker::LossOf(Ask& ask, uint32_t index) {
  if (ask.losses.size() <= index) ask.losses.resize(slots_.size());
  Slot& slot = slots_[index];
  Loss& loss = ask.losses[index];
  if (loss.stamp == slot.stamp) return loss;
  loss.stamp = slot.stamp;
  loss.fits = slot.state.Takes(ask.ask);
  if (!loss.fits) return loss;
  if (prices_.solved() && !slot.has_terms) {
    slot.terms = prices_.Terms(slot.state);
    slot.value = threat_.looms() ? threat_.ValueUnder(prices_, slot.state)
                                 : *std::min_element(slot.terms.begin(), slot.terms.end());
    slot.has_terms = true;
  }
  double most = -1e300;
  ForEachChoice(slot.state, ask.ask, [&](int gpu) {
    // Without prices the GPU with the least room, which comes last.
    const double after = prices_.solved() ? ValueAfter(slot, ask, gpu) : gpu;
    if (after < most) return;
    most = after;
    loss.gpu = static_cast<int8_t>(gpu);
  });
  loss.loss = 0;
  if (!prices_.solved()) return loss;
  loss.loss = slot.value - most;
  if (ask.ask.gpus > 0) loss.loss += model_price_[slot.state.model] * ask.ask.TotalMilli();
  loss.loss = std::round(loss.loss * kLossSteps) / kLossSteps;
  return loss;
}

std::optional<PackingSpot> GpuPacker::Choose(const GpuAsk& ask, Rng* ties) {
  Ask& known = Known(ask);
  if (known.solution != solution_) {
    known.cost = prices_.CostOf(ask);
    known.solution = solution_;
  }
  std::optional<PackingSpot> best;
  std::tuple<double, int32_t, int32_t> best_order;
  uint64_t equals = 0;
  for (size_t node = 0; node < slot_of_.size(); ++node) {
    const uint32_t index = slot_of_[node];
    const Loss& loss = LossOf(known, index);
    if (!loss.fits) continue;
    const Slot& slot = slots_[index];
    const std::tuple order(loss.loss, slot.idle_milli, slot.state.cpu_milli);
    if (best && order > best_order) continue;
    equals = best && order == best_order ? equals + 1 : 1;
    if (equals > 1 && (ties == nullptr || ties->Below(equals) != 0)) continue;
    best = PackingSpot{node, loss.gpu};
    best_order = order;
  }
  return best;
}

void GpuPacker::Place(const GpuAsk& ask, const PackingSpot& spot) {
  GpuState state = At(spot.node);
  state.Place(ask, spot.gpu);
  Leave(slot_of_[spot.node]);
  slot_of_[spot.node] = SlotFor(state);
}

void GpuPacker::Arrived(const GpuAsk& ask) {
  mix_.Add(ask);
  if (mix_.arrivals() >= solve_at_ && !mix_.kinds().empty()) Solve();
}

void GpuPacker::Solve() {
  std::vector<std::pair<GpuState, double>> states;
  double idle_milli = 0;
  for (Slot& slot : slots_) {
    if (slot.nodes == 0) continue;
    states.emplace_back(slot.state, slot.nodes);
    idle_milli += static_cast<double>(slot.nodes) * slot.idle_milli;
    slot.stamp = next_stamp_++;
    slot.has_terms = false;
  }
  prices_.Solve(states, mix_);
  threat_.Assess(prices_, states, mix_);
  PriceModels(idle_milli);
  ++solution_;
  const auto pause =
      static_cast<uint64_t>(kMostBetweenSolutions * (0.1 + idle_milli / total_milli_));
  solve_at_ = mix_.arrivals() + std::max(kLeastBetweenSolutions, std::min(pause, mix_.arrivals()));
}

// Of the pods that would fill what is idle, in the mix: how much those that name models want of
// each, as a share of what is idle of it.
void GpuPacker::PriceModels(double idle_milli) {
  std::array<double, kMaxGpuModels> idle{}, wanted{};
  for (const Slot& slot : slots_) {
    if (slot.nodes > 0) idle[slot.state.model] += static_cast<double>(slot.nodes) * slot.idle_milli;
  }
  double arrived = 0;
  for (const AskKind& kind : mix_.kinds()) arrived += kind.count * kind.ask.TotalMilli();
  for (const AskKind& kind : mix_.kinds()) {
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
