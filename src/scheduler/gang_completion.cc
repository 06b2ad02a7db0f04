#include "scheduler/gang_completion.h"

#include <algorithm>
#include <utility>

namespace muster::scheduler {

namespace {

using Units = std::vector<const Unit*>;
using Attempts = std::vector<GangAttempt>;

Attempts OneByOne(const Units& units, NodeFinder& finder, SearchBudget& budget) {
  Attempts attempts;
  for (const Unit* unit : units) attempts.push_back(PlaceGang(*unit, finder, budget));
  return attempts;
}

int64_t Completed(const Attempts& attempts) {
  return std::count_if(attempts.begin(), attempts.end(),
                       [](const GangAttempt& attempt) { return !attempt.placed.empty(); });
}

void TakeAllBack(const Attempts& attempts, NodeFinder& finder) {
  for (auto attempt = attempts.rbegin(); attempt != attempts.rend(); ++attempt)
    TakeBack(*attempt, finder);
}

// The units as one gang with what each of them needs as the minima of its tasks, and where each of
// its pods came from.
struct Joint {
  Unit unit;
  std::vector<std::pair<size_t, size_t>> origin;  // position in the units, in Unit::pods

  size_t AddTask(int64_t needed) {
    unit.tasks.push_back({"", needed, needed, 0});
    unit.min_member += needed;
    return unit.tasks.size() - 1;
  }
  void AddPod(const Unit& from, size_t index, size_t position, size_t task) {
    unit.pods.push_back(from.pods[position]);
    unit.pods.back().task = task;
    unit.pods.back().sub_group = kNoSubGroup;
    origin.emplace_back(index, position);
  }
};

// Positions of the units that could be completed if no other were.
std::vector<size_t> Completable(const Units& units, NodeFinder& finder, SearchBudget& budget) {
  std::vector<size_t> out;
  for (size_t i = 0; i < units.size(); ++i) {
    const GangAttempt alone = PlaceGang(*units[i], finder, budget);
    if (!alone.placed.empty()) out.push_back(i);
    TakeBack(alone, finder);
  }
  return out;
}

void AddUnit(const Unit& unit, size_t index, NodeFinder& finder, SearchBudget& budget,
             Joint& joint) {
  int64_t of_tasks = 0;
  for (const TaskCount& task : unit.tasks) of_tasks += task.Needed();
  if (!unit.sub_groups.empty()) {
    // Sub-groups that must be whole: only one choice of pods is tried, here too.
    const std::vector<size_t> pods = GangSearch(unit, finder, budget).Easiest();
    const size_t task = joint.AddTask(static_cast<int64_t>(pods.size()));
    for (const size_t position : pods) joint.AddPod(unit, index, position, task);
  } else if (of_tasks == 0) {
    const size_t task = joint.AddTask(unit.Needed());
    for (size_t position = 0; position < unit.pods.size(); ++position)
      joint.AddPod(unit, index, position, task);
  } else if (of_tasks == unit.Needed()) {
    const size_t first = joint.unit.tasks.size();
    for (const TaskCount& task : unit.tasks) joint.AddTask(task.Needed());
    for (size_t position = 0; position < unit.pods.size(); ++position) {
      if (unit.pods[position].task != kNoTask)
        joint.AddPod(unit, index, position, first + unit.pods[position].task);
    }
  } else {
    // Tasks within a task: only one choice of pods is tried.
    const size_t task = joint.AddTask(unit.Needed());
    for (const size_t position : GangSearch(unit, finder, budget).Easiest())
      joint.AddPod(unit, index, position, task);
  }
}

Joint Join(const Units& units, const std::vector<size_t>& wanted, NodeFinder& finder,
           SearchBudget& budget) {
  Joint joint;
  joint.unit.is_gang = true;
  joint.unit.min_member = 0;
  for (const size_t index : wanted) AddUnit(*units[index], index, finder, budget, joint);
  joint.unit.members = static_cast<int64_t>(joint.unit.pods.size());
  return joint;
}

}  // namespace

std::vector<GangAttempt> CompleteGangs(const std::vector<const Unit*>& units, NodeFinder& finder,
                                       SearchBudget& budget) {
  Attempts attempts = OneByOne(units, finder, budget);
  const int64_t completed = Completed(attempts);
  if (units.size() == 1 || completed == static_cast<int64_t>(units.size())) return attempts;
  TakeAllBack(attempts, finder);
  const std::vector<size_t> completable = Completable(units, finder, budget);
  if (static_cast<int64_t>(completable.size()) <= completed) return OneByOne(units, finder, budget);
  const Joint joint = Join(units, completable, finder, budget);
  std::vector<PlacedPod> placed;
  if (GangSearch(joint.unit, finder, budget).Run(placed) != GangSearch::Outcome::kFound)
    return OneByOne(units, finder, budget);
  attempts.assign(units.size(), {});
  for (const PlacedPod& pod : placed) {
    const auto [index, position] = joint.origin[pod.pod];
    attempts[index].placed.push_back({position, pod.placement});
  }
  for (size_t i = 0; i < units.size(); ++i) {
    if (!attempts[i].placed.empty()) PlaceMore(*units[i], finder, budget, attempts[i]);
  }
  return attempts;
}

}  // namespace muster::scheduler
