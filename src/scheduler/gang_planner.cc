#include "scheduler/gang_planner.h"

namespace muster::scheduler {

bool HasItsMembers(const Unit& unit) {
  return !unit.is_gang || (!unit.group_missing && unit.members >= unit.min_member);
}

GangAttempt PlaceWhatFits(const Unit& unit, NodeFinder& finder) {
  GangAttempt attempt;
  attempt.placed.reserve(unit.pods.size());
  cluster::ShapeIndex full =
      cluster::kNoIndex;  // the shape that found no node last: nothing is freed on the way
  for (size_t position = 0; position < unit.pods.size(); ++position) {
    const QueuedPod& pod = unit.pods[position];
    const cluster::NodeIndex node = pod.shape == full ? cluster::kNoIndex : finder.Best(pod.shape);
    if (node == cluster::kNoIndex) {
      full = pod.shape;
      if (!attempt.first_unplaced.has_value()) attempt.first_unplaced = position;
      continue;
    }
    cluster::ClusterSnapshot& snapshot = finder.snapshot();
    const cluster::DeviceSet devices = snapshot.PickDevices(snapshot.Shape(pod.shape), node);
    attempt.placed.push_back({position, finder.Place(pod.shape, node, pod.holder, devices)});
  }
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
