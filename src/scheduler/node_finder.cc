#include "scheduler/node_finder.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "base/check.h"
#include "scheduler/rules.h"

namespace muster::scheduler {

using cluster::kNoIndex;
using cluster::NodeIndex;

namespace {

constexpr uint64_t kNothingOutside = std::numeric_limits<uint64_t>::max();

uint64_t Saturate(int64_t value, int bits) {
  const int64_t most = (int64_t{1} << bits) - 1;
  return static_cast<uint64_t>(std::clamp<int64_t>(value, 0, most));
}

NodeIndex NodeOf(uint64_t order) { return static_cast<NodeIndex>(order & ((uint64_t{1} << kIndexBits) - 1)); }

void Push(std::vector<uint64_t>& heap, uint64_t order) {
  heap.push_back(order);
  std::push_heap(heap.begin(), heap.end(), std::greater<>());
}

void Pop(std::vector<uint64_t>& heap) {
  std::pop_heap(heap.begin(), heap.end(), std::greater<>());
  heap.pop_back();
}

}  // namespace

NodeFinder::NodeFinder(cluster::ClusterSnapshot& snapshot)
    : snapshot_(snapshot),
      by_shape_(snapshot.shape_slots()),
      changed_at_(snapshot.node_slots(), 0),
      older_(snapshot.node_slots(), kNoIndex),
      newer_(snapshot.node_slots(), kNoIndex) {
  CHECK(snapshot.node_slots() <= kMaxNodes);
}

uint64_t NodeFinder::OrderOf(const cluster::Shape& shape, NodeIndex node) const {
  uint64_t unwanted = 0;
  int64_t devices = 0;
  if (shape.device_resource != kNoIndex) {
    devices = snapshot_.Free(node, shape.device_resource);
  } else if (snapshot_.HasDevices(node)) {
    unwanted = 1;
    const std::span<const int64_t> free = snapshot_.FreeRow(node);
    for (size_t resource = cluster::kFirstExtendedIndex; resource < free.size(); ++resource) devices += free[resource];
  }
  uint64_t order = unwanted;
  order = order << kDeviceBits | Saturate(devices, kDeviceBits);
  order = order << kCpuBits | Saturate(snapshot_.Free(node, cluster::kCpuIndex), kCpuBits);
  return order << kIndexBits | node;
}

bool NodeFinder::Passes(Candidates& candidates, const cluster::Shape& shape, NodeIndex node) {
  const cluster::ClassIndex index = snapshot_.ClassOf(node);
  const auto check = [&] {
    return CheckRules(shape, snapshot_.Class(index), snapshot_.Node(node).labels_view()).rule == Rule::kPasses;
  };
  if (shape.names_nodes) return check();
  Tristate& passes = candidates.class_passes[index];
  if (passes == Tristate::kUnknown) passes = check() ? Tristate::kYes : Tristate::kNo;
  return passes == Tristate::kYes;
}

void NodeFinder::Scan(Candidates& candidates, const cluster::Shape& shape) {
  if (!candidates.scanned) {
    candidates.class_passes.assign(snapshot_.class_slots(), Tristate::kUnknown);
  } else {
    candidates.limit = std::min(candidates.limit * 2, kMaxCandidates);
  }
  candidates.scanned = true;
  candidates.seen = clock_;
  scratch_.clear();
  for (NodeIndex node = 0; node < snapshot_.node_slots(); ++node) {
    if (!snapshot_.HasNode(node) || !snapshot_.FitsAmounts(shape, node)) continue;
    if (Passes(candidates, shape, node)) scratch_.push_back(OrderOf(shape, node));
  }
  candidates.bound = kNothingOutside;
  if (scratch_.size() > candidates.limit) {
    const auto cut = scratch_.begin() + static_cast<ptrdiff_t>(candidates.limit);
    std::nth_element(scratch_.begin(), cut, scratch_.end());
    candidates.bound = *cut;
    scratch_.erase(cut, scratch_.end());
  }
  candidates.heap.assign(scratch_.begin(), scratch_.end());
  std::make_heap(candidates.heap.begin(), candidates.heap.end(), std::greater<>());
}

void NodeFinder::TakeInChanges(Candidates& candidates, const cluster::Shape& shape) {
  for (NodeIndex node = newest_; node != kNoIndex && changed_at_[node] > candidates.seen; node = older_[node]) {
    if (snapshot_.FitsAmounts(shape, node) && Passes(candidates, shape, node)) {
      Push(candidates.heap, OrderOf(shape, node));
    }
  }
  candidates.seen = clock_;
}

NodeIndex NodeFinder::Best(cluster::ShapeIndex index) {
  if (index >= by_shape_.size()) by_shape_.resize(index + 1);
  Candidates& candidates = by_shape_[index];
  const cluster::Shape& shape = snapshot_.Shape(index);
  if (!candidates.scanned) Scan(candidates, shape);
  TakeInChanges(candidates, shape);
  // Entries of changes that were overtaken pile up; a pass clears them.
  if (candidates.heap.size() > 2 * candidates.limit + kFirstCandidates) Scan(candidates, shape);
  while (true) {
    // Beyond the bound a node outside the heap may be better.
    if (candidates.heap.empty() || candidates.heap.front() > candidates.bound) {
      if (candidates.bound == kNothingOutside) return kNoIndex;
      Scan(candidates, shape);
      if (candidates.heap.empty()) return kNoIndex;
    }
    const uint64_t best = candidates.heap.front();
    const NodeIndex node = NodeOf(best);
    if (OrderOf(shape, node) == best && snapshot_.FitsAmounts(shape, node)) return node;
    Pop(candidates.heap);
  }
}

void NodeFinder::Touch(NodeIndex node) {
  changed_at_[node] = ++clock_;
  if (newest_ == node) return;
  if (newer_[node] != kNoIndex) older_[newer_[node]] = older_[node];
  if (older_[node] != kNoIndex) newer_[older_[node]] = newer_[node];
  older_[node] = newest_;
  newer_[node] = kNoIndex;
  if (newest_ != kNoIndex) newer_[newest_] = node;
  newest_ = node;
}

cluster::PlacementIndex NodeFinder::Place(cluster::ShapeIndex shape, NodeIndex node, cluster::HolderIndex holder,
                                          const cluster::DeviceSet& devices) {
  const cluster::PlacementIndex placement = snapshot_.Place(shape, node, holder, devices);
  Touch(node);
  return placement;
}

void NodeFinder::Remove(cluster::PlacementIndex placement) {
  Touch(snapshot_.At(placement).node);
  snapshot_.Remove(placement);
}

}  // namespace muster::scheduler
