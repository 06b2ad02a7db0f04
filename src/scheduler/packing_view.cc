#include "scheduler/packing_view.h"

#include <algorithm>
#include <utility>

#include "scheduler/packing_terms.h"

namespace muster::scheduler {

using cluster::kNoIndex;
using cluster::NodeIndex;

namespace {

// In 1/64 milli-GPU, the least by which losses differ; with room for small negative ones.
constexpr double kPriceSteps = 64;
constexpr double kPriceOffset = 1 << 20;

constexpr uint32_t kUninteresting = kNoIndex - 1;

}  // namespace

PackingView::PackingView(const cluster::ClusterSnapshot& snapshot,
                         std::shared_ptr<const Packing> packing)
    : snapshot_(snapshot), packing_(std::move(packing)), gpus_(GpuResources(snapshot)) {
  if (packing_ != nullptr) room_of_.assign(snapshot.node_slots(), kNoIndex);
}

PackingView::Ask PackingView::AskFor(const cluster::Shape& shape) const {
  Ask ask;
  if (packing_ == nullptr) return ask;
  ask.ask = AskOf(snapshot_, shape);
  ask.cost = packing_->prices.CostOf(ask.ask);
  return ask;
}

const PackingView::Room* PackingView::RoomOn(NodeIndex node) {
  uint32_t& at = room_of_[node];
  if (at == kUninteresting) return nullptr;
  if (at != kNoIndex) return &rooms_[at];
  const cluster::ResourceIndex gpu = GpuOf(snapshot_, node, gpus_);
  const auto& models = packing_->models;
  const auto model = gpu == kNoIndex
                         ? models.end()
                         : std::find(models.begin(), models.end(), ModelName(snapshot_, node, gpu));
  if (model == models.end()) {
    at = kUninteresting;
    return nullptr;
  }
  if (spare_rooms_.empty()) {
    at = static_cast<uint32_t>(rooms_.size());
    rooms_.emplace_back();
  } else {
    at = spare_rooms_.back();
    spare_rooms_.pop_back();
  }
  Room& room = rooms_[at];
  room.state = StateOf(snapshot_, node, gpu, static_cast<uint8_t>(model - models.begin()),
                       scheduler::Room::kFree);
  room.room = packing_->prices.RoomOf(room.state);
  return &room;
}

void PackingView::Touch(NodeIndex node) {
  if (packing_ == nullptr || room_of_[node] >= kUninteresting) return;
  spare_rooms_.push_back(room_of_[node]);
  room_of_[node] = kNoIndex;
}

std::pair<double, int> PackingView::LeastLoss(const Ask& ask, const Room& room) const {
  std::pair<double, int> least(1e300, 0);
  cluster::ForEachChoice(room.state, ask.ask, [&](int gpu) {
    const double loss = packing_->prices.Loss(room.state, room.room, ask.ask, ask.cost, gpu);
    if (loss <= least.first) least = {loss, gpu};  // of equal ones the fullest, which comes last
  });
  return least;
}

uint32_t PackingView::Price(const Ask& ask, NodeIndex node) {
  if (packing_ == nullptr) return 0;
  const Room* room = RoomOn(node);
  if (room == nullptr || !room->state.Takes(ask.ask)) return 0;
  const double price = LeastLoss(ask, *room).first * kPriceSteps + kPriceOffset;
  return static_cast<uint32_t>(std::clamp(price, 0.0, double{UINT32_MAX}));
}

int16_t PackingView::ShareOf(const Ask& ask, NodeIndex node) {
  if (packing_ == nullptr || !ask.ask.IsShare()) return 0;
  const Room* room = RoomOn(node);
  if (room == nullptr || !room->state.Takes(ask.ask)) return 0;
  return room->state.free_milli[static_cast<size_t>(LeastLoss(ask, *room).second)];
}

}  // namespace muster::scheduler
