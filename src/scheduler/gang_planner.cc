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
    return pod.shape == first.shape && pod.task == first.task && pod.sub_group == first.sub_group &&
           look(pod) == look(first);
  });
}

// Of these pods those that are needed to make the sub-group whole, as a gang.
Unit PartOf(const Unit& unit, size_t sub_group, const std::vector<size_t>& positions) {
  const SubGroup& group = unit.sub_groups.groups[sub_group];
  Unit part;
  part.ns = unit.ns;
  part.name = unit.name;
  part.is_gang = true;
  part.min_member = group.size;
  part.members = group.members;
  part.occupied = group.occupied;
  part.priority = unit.priority;
  for (const size_t position : positions) {
    QueuedPod& pod = part.pods.emplace_back(unit.pods[position]);
    pod.task = kNoTask;
    pod.sub_group = kNoSubGroup;
  }
  return part;
}

// Places every sub-group that is not whole and fits, begun ones first.
void PlaceSubGroups(const Unit& unit, NodeFinder& finder, SearchBudget& budget,
                    const std::vector<bool>& is_placed, std::vector<PlacedPod>& placed) {
  const std::vector<SubGroup>& groups = unit.sub_groups.groups;
  std::vector<std::vector<size_t>> pods_of(groups.size());
  std::vector<bool> has_placed(groups.size(), false);
  for (size_t position = 0; position < unit.pods.size(); ++position) {
    const QueuedPod& pod = unit.pods[position];
    if (unit.ComesAlone(pod)) continue;
    pods_of[pod.sub_group].push_back(position);
    if (is_placed[position]) has_placed[pod.sub_group] = true;
  }
  for (const bool begun : {true, false}) {
    for (size_t group = 0; group < groups.size(); ++group) {
      if (groups[group].IsBegun() != begun || has_placed[group] || pods_of[group].empty()) continue;
      const Unit part = PartOf(unit, group, pods_of[group]);
      GangAttempt attempt = PlaceGang(part, finder, budget);
      if (static_cast<int64_t>(attempt.placed.size()) > part.Needed())
        TakeBackElastic(part, finder, attempt);
      for (const PlacedPod& each : attempt.placed)
        placed.push_back({pods_of[group][each.pod], each.placement});
    }
  }
}

// Of what is not placed the pods that may be placed one by one.
std::vector<size_t> WaitingAlone(const Unit& unit, const std::vector<bool>& is_placed) {
  std::vector<bool> is_open(unit.sub_groups.groups.size(), false);
  for (size_t position = 0; position < unit.pods.size(); ++position) {
    if (is_placed[position] && unit.pods[position].sub_group != kNoSubGroup)
      is_open[unit.pods[position].sub_group] = true;
  }
  std::vector<size_t> waiting;
  waiting.reserve(unit.pods.size());
  for (size_t position = 0; position < unit.pods.size(); ++position) {
    const QueuedPod& pod = unit.pods[position];
    if (!is_placed[position] && (unit.ComesAlone(pod) || is_open[pod.sub_group]))
      waiting.push_back(position);
  }
  return waiting;
}

std::vector<bool> ArePlaced(const Unit& unit, const GangAttempt& attempt) {
  std::vector<bool> is_placed(unit.pods.size(), false);
  for (const PlacedPod& placed : attempt.placed) is_placed[placed.pod] = true;
  return is_placed;
}

// The first pod that is not placed; rather one whose sub-group exists.
std::optional<size_t> FirstUnplaced(const Unit& unit, const std::vector<bool>& is_placed) {
  std::optional<size_t> first;
  for (size_t position = 0; position < unit.pods.size(); ++position) {
    if (is_placed[position]) continue;
    if (unit.MayBePlaced(unit.pods[position])) return position;
    if (!first.has_value()) first = position;
  }
  return first;
}

// Those that lack pods of their own do not count, and something is left to be placed.
bool HasItsSubGroups(const Unit& unit) {
  const int64_t usable = std::count_if(unit.pods.begin(), unit.pods.end(),
                                       [&](const QueuedPod& pod) { return unit.MayBePlaced(pod); });
  return usable > 0 && unit.occupied + usable >= unit.min_member && unit.sub_groups.CanBeMet();
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
                     [](const TaskCount& task) { return task.members >= task.min_member; }) &&
         (unit.sub_groups.empty() || HasItsSubGroups(unit));
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

void PlaceMore(const Unit& unit, NodeFinder& finder, SearchBudget& budget, GangAttempt& attempt) {
  size_t before = 0;
  // One pod may wait for another one of its gang, whichever comes first.
  do {
    before = attempt.placed.size();
    if (!unit.sub_groups.empty())
      PlaceSubGroups(unit, finder, budget, ArePlaced(unit, attempt), attempt.placed);
    std::vector<size_t> waiting = WaitingAlone(unit, ArePlaced(unit, attempt));
    while (PlaceSome(unit, finder, waiting, attempt.placed) && LooksAtPods(unit, finder)) {
    }
  } while (!unit.sub_groups.empty() && attempt.placed.size() > before &&
           attempt.placed.size() < unit.pods.size() && LooksAtPods(unit, finder));
  attempt.first_unplaced = FirstUnplaced(unit, ArePlaced(unit, attempt));
}

GangAttempt PlaceWhatFits(const Unit& unit, NodeFinder& finder, SearchBudget& budget) {
  GangAttempt attempt;
  attempt.placed.reserve(unit.pods.size());
  PlaceMore(unit, finder, budget, attempt);
  return attempt;
}

GangAttempt PlaceWhatFits(const Unit& unit, NodeFinder& finder) {
  SearchBudget budget;
  return PlaceWhatFits(unit, finder, budget);
}

GangAttempt PlaceGang(const Unit& unit, NodeFinder& finder, SearchBudget& budget) {
  if (!HasItsMembers(unit) || ShortOf(unit, finder.snapshot()).has_value()) return {};
  GangAttempt attempt = PlaceWhatFits(unit, finder, budget);
  if (Suffices(unit, attempt)) return attempt;
  TakeBack(attempt, finder);
  attempt.placed.clear();
  if (AreAlike(unit, finder)) return attempt;
  switch (GangSearch(unit, finder, budget).Run(attempt.placed)) {
    case GangSearch::Outcome::kFound:
      PlaceMore(unit, finder, budget, attempt);
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
  if (!unit.sub_groups.empty() && keeps_order) return;
  Lack lack = unit.sub_groups.empty()
                  ? Lack(unit)
                  : Lack(unit, std::vector<bool>(unit.pods.size()), ArePlaced(unit, attempt));
  if (!unit.sub_groups.empty() && !lack.CanBeFilled()) return;
  std::erase_if(attempt.placed, [&](const PlacedPod& placed) {
    const bool keep = !lack.IsFilled() && (lack.Fill(placed.pod) || keeps_order);
    if (!keep) finder.Remove(placed.placement);
    return !keep;
  });
}

}  // namespace muster::scheduler
