#include "scheduler/queue.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace muster::scheduler {

namespace {

// What the minima of sub-groups want at least, or, where nobody comes alone, the smallest of them.
int64_t NeededOfSubGroups(const Unit& unit) {
  int64_t least = INT64_MAX;
  for (const QueuedPod& pod : unit.pods) {
    if (unit.ComesAlone(pod)) return unit.sub_groups.Needed();
    if (unit.MayBePlaced(pod))
      least = std::min(least, unit.sub_groups.groups[pod.sub_group].Needed());
  }
  return std::max(unit.sub_groups.Needed(), least == INT64_MAX ? 0 : least);
}

// Chooses pods until their unit has enough.
class Chooser {
 public:
  Chooser(const Unit& unit, std::vector<bool> chosen, const std::vector<bool>& available)
      : unit_(unit), available_(available), chosen_(std::move(chosen)) {
    missing_ = std::max<int64_t>(unit.min_member - unit.occupied, 1);
    for (const TaskCount& task : unit.tasks) of_task_.push_back(task.Needed());
    for (const SubGroup& group : unit.sub_groups.groups) of_group_.push_back(group.Needed());
    pods_of_.resize(of_group_.size());
    for (size_t position = 0; position < unit.pods.size(); ++position) {
      const size_t group = unit.pods[position].sub_group;
      if (group != kNoSubGroup && available[position]) pods_of_[group].push_back(position);
      if (chosen_[position]) Count(unit.pods[position]);
    }
  }

  std::vector<bool> Run() {
    const std::vector<SubGroup>& groups = unit_.sub_groups.groups;
    for (size_t group = 0; group < groups.size(); ++group) {
      if (groups[group].is_required) TakeGroup(group);
    }
    for (size_t policy = 0; policy < unit_.sub_groups.policies.size(); ++policy) MeetPolicy(policy);
    for (size_t task = 0; task < of_task_.size(); ++task) {
      const auto is_filled = [&] { return of_task_[task] <= 0; };
      TakeAny(is_filled, [&](const QueuedPod& pod) { return pod.task == task; });
    }
    TakeAny([&] { return missing_ <= 0; }, [](const QueuedPod&) { return true; });
    return std::move(chosen_);
  }

 private:
  void Count(const QueuedPod& pod) {
    --missing_;
    if (pod.task != kNoTask) --of_task_[pod.task];
    if (pod.sub_group != kNoSubGroup) --of_group_[pod.sub_group];
  }
  void Take(size_t position) {
    if (chosen_[position] || !available_[position]) return;
    chosen_[position] = true;
    Count(unit_.pods[position]);
  }
  // What makes it whole, pods of tasks that lack some first; false if it cannot be.
  bool TakeGroup(size_t group) {
    const std::vector<size_t>& pods = pods_of_[group];
    const auto left = std::count_if(pods.begin(), pods.end(),
                                    [&](size_t position) { return !chosen_[position]; });
    if (left < of_group_[group]) return false;
    for (const bool any : {false, true}) {
      for (const size_t position : pods) {
        const size_t task = unit_.pods[position].task;
        if (of_group_[group] > 0 && (any || (task != kNoTask && of_task_[task] > 0)))
          Take(position);
      }
    }
    return true;
  }
  void MeetPolicy(size_t policy) {
    const std::vector<SubGroup>& groups = unit_.sub_groups.groups;
    int64_t missing = unit_.sub_groups.policies[policy].min_sub_groups;
    for (size_t group = 0; group < groups.size(); ++group)
      missing -= groups[group].policy == policy && of_group_[group] <= 0 ? 1 : 0;
    for (const bool begun : {true, false}) {
      for (size_t group = 0; group < groups.size() && missing > 0; ++group) {
        if (groups[group].policy == policy && of_group_[group] > 0 &&
            groups[group].IsBegun() == begun && TakeGroup(group))
          --missing;
      }
    }
  }
  // Those that come alone first, then with their sub-groups.
  template <class IsFilled, class Suits>
  void TakeAny(IsFilled is_filled, Suits suits) {
    for (const bool with_group : {false, true}) {
      for (size_t position = 0; position < unit_.pods.size() && !is_filled(); ++position) {
        const QueuedPod& pod = unit_.pods[position];
        if (!suits(pod)) continue;
        const bool alone = pod.sub_group == kNoSubGroup || of_group_[pod.sub_group] <= 0;
        if (alone || (with_group && TakeGroup(pod.sub_group) && !is_filled())) Take(position);
      }
    }
  }

  const Unit& unit_;
  const std::vector<bool>& available_;
  std::vector<bool> chosen_;
  int64_t missing_;  // to minMember
  std::vector<int64_t> of_task_, of_group_;
  std::vector<std::vector<size_t>> pods_of_;  // by sub-group
};

std::vector<size_t> PositionsOf(const std::vector<bool>& chosen) {
  std::vector<size_t> positions;
  for (size_t position = 0; position < chosen.size(); ++position) {
    if (chosen[position]) positions.push_back(position);
  }
  return positions;
}

}  // namespace

int64_t Unit::Needed() const {
  if (!is_gang) return 1;
  int64_t of_tasks = 0;
  for (const TaskCount& task : tasks) of_tasks += task.Needed();
  const int64_t needed = std::max<int64_t>({min_member - occupied, of_tasks, 1});
  return sub_groups.empty() ? needed : std::max(needed, NeededOfSubGroups(*this));
}

bool Unit::Suffices(const std::vector<size_t>& positions) const {
  if (static_cast<int64_t>(positions.size()) < Needed()) return false;
  std::vector<int64_t> of_task(tasks.size(), 0);
  for (const size_t position : positions) {
    if (pods[position].task != kNoTask) ++of_task[pods[position].task];
  }
  for (size_t task = 0; task < tasks.size(); ++task) {
    if (of_task[task] < tasks[task].Needed()) return false;
  }
  if (sub_groups.empty()) return true;
  std::vector<int64_t> of_group(sub_groups.groups.size(), 0);
  for (const size_t position : positions) {
    if (pods[position].sub_group != kNoSubGroup) ++of_group[pods[position].sub_group];
  }
  return sub_groups.Suffices(of_group);
}

bool Unit::IsMet() const {
  return occupied >= min_member &&
         std::all_of(tasks.begin(), tasks.end(),
                     [](const auto& task) { return task.Needed() == 0; }) &&
         (sub_groups.empty() || sub_groups.AreMet());
}

std::optional<std::vector<bool>> ChooseEnough(const Unit& unit, std::vector<bool> chosen,
                                              const std::vector<bool>& available) {
  chosen = Chooser(unit, std::move(chosen), available).Run();
  if (!unit.Suffices(PositionsOf(chosen))) return std::nullopt;
  return chosen;
}

Lack::Lack(const Unit& unit) : unit_(unit), others_(unit.Needed()) {
  for (const TaskCount& task : unit.tasks) {
    of_task_.push_back(task.Needed());
    tasks_ += task.Needed();
  }
  others_ -= tasks_;
}

Lack::Lack(const Unit& unit, std::vector<bool> placed, const std::vector<bool>& available)
    : unit_(unit), others_(kNever), wanted_(unit.pods.size(), false) {
  if (auto enough = ChooseEnough(unit, std::move(placed), available); enough.has_value()) {
    wanted_ = std::move(*enough);
    others_ = std::count(wanted_.begin(), wanted_.end(), true);
  }
}

bool Lack::Fill(size_t position) {
  if (!wanted_.empty()) {
    if (!wanted_[position]) return false;
    wanted_[position] = false;
    --others_;
    return true;
  }
  const size_t task = unit_.pods[position].task;
  if (task != kNoTask && of_task_[task] > 0) {
    --of_task_[task];
    --tasks_;
    return true;
  }
  return others_-- > 0;
}

bool GoesBefore(const Unit& a, const Unit& b) {
  const bool a_completes = a.IsCompleting();
  return a_completes != b.IsCompleting() ? a_completes : RanksBefore(a, b);
}

bool RanksBefore(const Unit& a, const Unit& b) {
  return std::tie(b.priority, a.created, a.ns, a.name, a.is_gang) <
         std::tie(a.priority, b.created, b.ns, b.name, b.is_gang);
}

}  // namespace muster::scheduler
