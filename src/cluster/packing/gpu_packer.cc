#include "cluster/packing/gpu_packer.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace muster::cluster {
namespace {

constexpr uint64_t kFirstSolution = 4;  // arrivals
constexpr uint64_t kLeastBetweenSolutions = 64;
constexpr double kMostBetweenSolutions = 1500;  // while the cluster is empty, a tenth when full
constexpr size_t kMaxKnownAsks = 4096;

}  // namespace

GpuPacker::GpuPacker(const std::vector<GpuState>& nodes)
    : prices_(nodes), solve_at_(kFirstSolution) {
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
    slot.has_room = false;
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

const GpuPacker::Loss& GpuPacker::LossOf(Ask& ask, uint32_t index) {
  if (ask.losses.size() <= index) ask.losses.resize(slots_.size());
  Slot& slot = slots_[index];
  Loss& loss = ask.losses[index];
  if (loss.stamp == slot.stamp) return loss;
  loss.stamp = slot.stamp;
  loss.fits = slot.state.Takes(ask.ask);
  if (!loss.fits) return loss;
  if (prices_.solved() && !slot.has_room) {
    slot.room = prices_.RoomOf(slot.state);
    slot.has_room = true;
  }
  double least = 1e300;
  ForEachChoice(slot.state, ask.ask, [&](int gpu) {
    // Without prices the GPU with the least room, which comes last.
    const double cost =
        prices_.solved() ? prices_.Loss(slot.state, slot.room, ask.ask, ask.cost, gpu) : -gpu;
    if (cost > least) return;
    least = cost;
    loss.gpu = static_cast<int8_t>(gpu);
  });
  loss.loss = prices_.solved() ? least : 0;
  return loss;
}

std::optional<PackingSpot> GpuPacker::Choose(const GpuAsk& ask, Rng* ties) {
  Ask& known = Known(ask);
  if (known.solution != solution_) {
    if (prices_.solved()) known.cost = prices_.CostOf(ask);
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
  mix_.Arrived(ask);
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
    slot.has_room = false;
  }
  prices_.Solve(states, mix_);
  ++solution_;
  const auto pause =
      static_cast<uint64_t>(kMostBetweenSolutions * (0.1 + idle_milli / total_milli_));
  solve_at_ = mix_.arrivals() + std::max(kLeastBetweenSolutions, std::min(pause, mix_.arrivals()));
}

}  // namespace muster::cluster
