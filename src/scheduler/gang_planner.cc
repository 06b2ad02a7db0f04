#include "scheduler/gang_planner.h"

#include <algorithm>

namespace muster::scheduler {

namespace {

// Passes once over the pods at the positions `waiting` and leaves those there that found no node.
// True if it placed any and left any.
bool PlaceSome(const Unit& unit, NodeFinder& finder, std::vector<size_t>& waiting,
               std::vector<PlacedPod>& placed) {
  // The pod that found no node last: one like it finds none either, as nothing is freed on the way.
  const QueuedPod* full = nullptr;
  const size_t before = waiting.size();
  std::erase_if(waiting, [&](size_t position) {
    const QueuedPod& pod = unit.pods[position];
    if (full != nullptr && full->shape == pod.shape && full->identity == pod.identity) return false;
    const bool at_nominated =
        pod.nominated != cluster::kNoIndex && finder.Takes(pod.shape, pod.identity, pod.nominated);
    const cluster::NodeIndex node =
        at_nominated ? pod.nominated : finder.Best(pod.shape, pod.identity);
    if (node == cluster::kNoIndex) {
      full = &pod;
      return false;
    }
    const cluster::DeviceSet devices = finder.PickDevices(pod.shape, pod.identity, node);
    placed.push_back({position, finder.Place(pod.shape, node, pod.holder, devices, pod.identity)});
    return true;
  });
  return !waiting.empty() && waiting.size() < before;
}

bool Suffices(const Unit& unit, const GangAttempt& attempt) {
  std::vector<size_t> positions;
  positions.reserve(attempt.placed.size());
  for (const PlacedPod& placed : attempt.placed) positions.push_back(placed.pod);
  return unit.Suffices(positions);
}

// Where pods do not differ, another order or choice of them changes nothing.
bool AreAlike(const Unit& unit, NodeFinder& finder) {
  const QueuedPod& first = unit.pods.front();
  const auto look = [&](const QueuedPod& pod) {
    return finder.pod_rules().LookOf(pod.shape, pod.identity);
  };
  return std::all_of(unit.pods.begin(), unit.pods.end(), [&](const QueuedPod& pod) {
    return pod.shape == first.shape && pod.task == first.task && look(pod) == look(first);
  });
}

}  // namespace

bool LooksAtPods(const Unit& unit, const NodeFinder& finder) {
  return std::any_of(unit.pods.begin(), unit.pods.end(), [&](const QueuedPod& pod) {
    return finder.snapshot().Shape(pod.shape).constraints.relations.LooksAtPods();
  });
}

bool HasItsMembers(const Unit& unit) {
  if (!unit.is_gang) return true;
  return !unit.group_missing && unit.members >= unit.min_member &&
         std::all_of(unit.tasks.begin(), unit.tasks.end(),
                     [](const TaskCount& task) { return task.members >= task.min_member; });
}

std::optional<Shortage> ShortOf(const Unit& unit, const cluster::ClusterSnapshot& snapshot) {
  for (const auto& [name, wanted] : unit.min_resources) {
    const cluster::ResourceIndex resource = snapshot.FindResource(name);
    if (resource == cluster::kNoIndex) return Shortage{name, wanted};
    if (LeastAskedFor(unit, snapshot, resource) >= wanted) continue;
    if (!HasFree(snapshot, resource, wanted)) return Shortage{name, wanted};
  }
  return std::nullopt;
}

void PlaceMore(const Unit& unit, NodeFinder& finder, GangAttempt& attempt) {
  std::vector<bool> is_placed(unit.pods.size(), false);
  for (const PlacedPod& placed : attempt.placed) is_placed[placed.pod] = true;
  std::vector<size_t> waiting;
  waiting.reserve(unit.pods.size());
  for (size_t position = 0; position < unit.pods.size(); ++position) {
    if (!is_placed[position]) waiting.push_back(position);
  }
  // One pod may wait for another one of its gang, whichever comes first.
  while (PlaceSome(unit, finder, waiting, attempt.placed) && LooksAtPods(unit, finder)) {
  }
  attempt.first_unplaced.reset();
  if (!waiting.empty()) attempt.first_unplaced = waiting.front();
}

GangAttempt PlaceWhatFits(const Unit& unit, NodeFinder& finder) {
  GangAttempt attempt;
  attempt.placed.reserve(unit.pods.size());
  PlaceMore(unit, finder, attempt);
  return attempt;
}

GangAttempt PlaceGang(const Unit& unit, NodeFinder& finder, SearchBudget& budget) {
  if (!HasItsMembers(unit) || ShortOf(unit, finder.snapshot()).has_value()) return {};
  GangAttempt attempt = PlaceWhatFits(unit, finder);
  if (Suffices(unit, attempt)) return attempt;
  TakeBack(attempt, finder);
  attempt.placed.clear();
  if (AreAlike(unit, finder)) return attempt;
  switch (GangSearch(unit, finder, budget).Run(attempt.placed)) {
    case GangSearch::Outcome::kFound:
      PlaceMore(unit, finder, attempt);
      break;
    case GangSearch::Outcome::kUndecided:
      attempt.undecided = true;
      break;
    case GangSearch::Outcome::kNone:
      break;
  }
  return attempt;
}

GangAttempt PlaceGang(const Unit& unit, NodeFinder& finder) {
  SearchBudget budget;
  return PlaceGang(unit, finder, budget);
}

void TakeBack(const GangAttempt& attempt, NodeFinder& finder) {
  for (auto placed = attempt.placed.rbegin(); placed != attempt.placed.rend(); ++placed) {
    finder.Remove(placed->placement);
  }
}

void TakeBackElastic(const Unit& unit, NodeFinder& finder, GangAttempt& attempt) {
  // A pod may be where it is for one that was placed before it.
  const bool keeps_order = LooksAtPods(unit, finder);
  Lack lack(unit);
  std::erase_if(attempt.placed, [&](const PlacedPod& placed) {
    const bool keep = !lack.IsFilled() && (lack.Fill(placed.pod) || keeps_order);
    if (!keep) finder.Remove(placed.placement);
    return !keep;
  });
}

}  // namespace muster::scheduler
