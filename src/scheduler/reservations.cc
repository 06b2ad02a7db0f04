#include "scheduler/reservations.h"

#include <algorithm>

#include "scheduler/rules.h"

namespace muster::scheduler {

using cluster::kNoIndex;

namespace {

bool MayTake(const cluster::ClusterSnapshot& snapshot, const QueuedPod& pod) {
  if (pod.nominated == kNoIndex || !snapshot.HasNode(pod.nominated)) return false;
  const cluster::Shape& shape = snapshot.Shape(pod.shape);
  return snapshot.OffersAmounts(shape, pod.nominated) &&
         CheckRules(shape, snapshot.Class(snapshot.ClassOf(pod.nominated)),
                    snapshot.Node(pod.nominated).labels_view())
                 .rule == Rule::kPasses;
}

}  // namespace

Reservations::Reservations(const Queue& queue, NodeFinder& finder)
    : queue_(queue), finder_(finder) {
  for (size_t unit = 0; unit < queue.size(); ++unit) {
    for (size_t pod = 0; pod < queue[unit].pods.size(); ++pod) {
      const QueuedPod& queued = queue[unit].pods[pod];
      if (MayTake(finder.snapshot(), queued))
        entries_.push_back({unit, pod, queue[unit].priority, queued.nominated});
    }
  }
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const Entry& a, const Entry& b) { return a.priority > b.priority; });
  for (size_t i = 0; i < entries_.size(); ++i) by_unit_[entries_[i].unit].push_back(i);
}

void Reservations::At(size_t unit) {
  if (entries_.empty()) return;
  const int64_t priority = queue_[unit].priority;
  for (; level_ < entries_.size() && entries_[level_].priority >= priority; ++level_)
    Hold(entries_[level_]);
  while (level_ > 0 && entries_[level_ - 1].priority < priority) Release(entries_[--level_]);
  if (const auto left = by_unit_.find(unit_); left != by_unit_.end()) {
    for (const size_t i : left->second) {
      if (i < level_) Hold(entries_[i]);
    }
  }
  unit_ = unit;
  if (const auto own = by_unit_.find(unit); own != by_unit_.end()) {
    for (const size_t i : own->second) Release(entries_[i]);
  }
}

bool Reservations::Placed(size_t pod, cluster::NodeIndex node) {
  const auto own = by_unit_.find(unit_);
  if (own == by_unit_.end()) return false;
  for (const size_t i : own->second) {
    if (entries_[i].pod != pod) continue;
    entries_[i].over = true;
    return entries_[i].node != node;
  }
  return false;
}

void Reservations::Leave() {
  for (Entry& entry : entries_) Release(entry);
  level_ = 0;
  unit_ = SIZE_MAX;
}

void Reservations::Hold(Entry& entry) {
  if (entry.over || entry.at != kNoIndex) return;
  const QueuedPod& pod = queue_[entry.unit].pods[entry.pod];
  entry.at = finder_.Place(pod.shape, entry.node, pod.holder, cluster::DeviceSet());
}

void Reservations::Release(Entry& entry) {
  if (entry.at == kNoIndex) return;
  finder_.Remove(entry.at);
  entry.at = kNoIndex;
}

}  // namespace muster::scheduler
