#include "scheduler/gang_planner.h"

#include <algorithm>
#include <numeric>

namespace muster::scheduler {

namespace {

// Passes once over the pods at the positions `waiting` and leaves those there that found no node.
// True if it placed any and left any.
bool PlaceSome(const Unit& unit, NodeFinder& finder, std::vector<size_t>& waiting,
               std::vector<PlacedPod>& placed) {
  cluster::ClusterSnapshot& snapshot = finder.snapshot();
  // The pod that found no node last: one like it finds none either, as nothing is freed on the way.
  const QueuedPod* full = nullptr;
  const size_t before = waiting.size();
  std::erase_if(waiting, [&](size_t position) {
    const QueuedPod& pod = unit.pods[position];
    if (full != nullptr && full->shape == pod.shape && full->identity == pod.identity) return false;
    const cluster::NodeIndex node = finder.Best(pod.shape, pod.identity);
    if (node == cluster::kNoIndex) {
      full = &pod;
      return false;
    }
    const cluster::Shape& shape = snapshot.Shape(pod.shape);
    placed.push_back({position, finder.Place(pod.shape, node, pod.holder,
                                             snapshot.PickDevices(shape, node), pod.identity)});
    return true;
  });
  return !waiting.empty() && waiting.size() < before;
}

}  // namespace

bool LooksAtPods(const Unit& unit, const NodeFinder& finder) {
  return std::any_of(unit.pods.begin(), unit.pods.end(), [&](const QueuedPod& pod) {
    return finder.snapshot().Shape(pod.shape).constraints.relations.LooksAtPods();
  });
}

bool HasItsMembers(const Unit& unit) {
  return !unit.is_gang || (!unit.group_missing && unit.members >= unit.min_member);
}

GangAttempt PlaceWhatFits(const Unit& unit, NodeFinder& finder) {
  GangAttempt attempt;
  attempt.placed.reserve(unit.pods.size());
  std::vector<size_t> waiting(unit.pods.size());
  std::iota(waiting.begin(), waiting.end(), size_t{0});
  // One pod may wait for another one of its gang, whichever comes first.
  while (PlaceSome(unit, finder, waiting, attempt.placed) && LooksAtPods(unit, finder)) {
  }
  if (!waiting.empty()) attempt.first_unplaced = waiting.front();
  std::sort(attempt.placed.begin(), attempt.placed.end(),
            [](const PlacedPod& a, const PlacedPod& b) { return a.pod < b.pod; });
  return attempt;
}

GangAttempt PlaceGang(const Unit& unit, NodeFinder& finder) {
  GangAttempt attempt = PlaceWhatFits(unit, finder);
  if (static_cast<int64_t>(attempt.placed.size()) < unit.Needed()) {
    TakeBack(attempt, finder);
    attempt.placed.clear();
  }
  return attempt;
}

void TakeBack(const GangAttempt& attempt, NodeFinder& finder) {
  for (auto placed = attempt.placed.rbegin(); placed != attempt.placed.rend(); ++placed) {
    finder.Remove(placed->placement);
  }
}

}  // namespace muster::scheduler
