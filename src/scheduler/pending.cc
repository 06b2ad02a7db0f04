#include "scheduler/pending.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace muster::scheduler {

using cluster::ClusterCache;
using cluster::PodKey;
using cluster::PodRecord;

namespace {

bool WaitsForOurs(const PodRecord& pod, const std::vector<std::string>& scheduler_names) {
  if (pod.IsPlaced() || pod.info.deleting || pod.info.IsFinished()) return false;
  return std::find(scheduler_names.begin(), scheduler_names.end(), pod.info.scheduler_name) !=
         scheduler_names.end();
}

const cluster::PodGroupInfo* InfoOf(const ClusterCache& cache, const PodKey& key) {
  const cluster::Group* group = cache.FindGroup(key);
  return group == nullptr ? nullptr : group->info();
}

Unit MakeGang(const ClusterCache& cache, const PodKey& key, const PriorityClasses& priorities) {
  Unit unit;
  unit.ns = key.ns;
  unit.name = key.name;
  unit.is_gang = true;
  GangCount count = CountGang(cache, key);
  unit.members = count.members;
  unit.occupied = count.occupied;
  unit.tasks = std::move(count.tasks);
  unit.sub_groups = std::move(count.sub_groups);
  unit.priority = INT64_MIN;
  const cluster::PodGroupInfo* info = InfoOf(cache, key);
  unit.group_missing = info == nullptr;
  if (unit.group_missing) return unit;
  unit.min_member = info->min_member;
  unit.created = info->created;
  // A gang that has begun was admitted: what it needs now is what its pods ask for.
  if (unit.occupied == 0) unit.min_resources = info->min_resources;
  if (const auto found = priorities.find(info->priority_class); found != priorities.end()) {
    unit.priority = found->second;
  }
  return unit;
}

// Only pods that are there to be placed count as members, whatever else exists.
void CountReady(Unit& unit) {
  const int64_t ready = unit.occupied + static_cast<int64_t>(unit.pods.size());
  unit.held = unit.members - ready;
  unit.members = ready;
  for (TaskCount& task : unit.tasks) task.members = task.occupied;
  for (const QueuedPod& pod : unit.pods) {
    if (pod.task != kNoTask) ++unit.tasks[pod.task].members;
  }
  for (SubGroup& each : unit.sub_groups.groups) each.members = each.occupied;
  for (const QueuedPod& pod : unit.pods) {
    if (pod.sub_group != kNoSubGroup) ++unit.sub_groups.groups[pod.sub_group].members;
  }
}

}  // namespace

size_t SubGroupOf(const ClusterCache& cache, const PodRecord& pod, SubGroups& sub_groups) {
  if (sub_groups.empty()) return kNoSubGroup;
  const cluster::PodGroupInfo* info = InfoOf(cache, {pod.info.ns, pod.info.group});
  return sub_groups.Of(info->sub_group_policies, cache.snapshot().Identity(pod.identity).labels);
}

size_t TaskOf(const std::vector<TaskCount>& tasks, const std::string& name) {
  const auto found = std::find_if(tasks.begin(), tasks.end(),
                                  [&](const TaskCount& task) { return task.name == name; });
  return found == tasks.end() ? kNoTask : static_cast<size_t>(found - tasks.begin());
}

bool IsPending(const PodRecord& pod, const std::vector<std::string>& scheduler_names) {
  return WaitsForOurs(pod, scheduler_names) && !pod.info.gated;
}

bool IsGated(const PodRecord& pod, const std::vector<std::string>& scheduler_names) {
  return WaitsForOurs(pod, scheduler_names) && pod.info.gated;
}

UnitKey UnitOf(const cluster::PodFacts& pod) {
  return {!pod.group.empty(), {pod.ns, pod.group.empty() ? pod.name : pod.group}};
}

UnitKey KeyOf(const Unit& unit) { return {unit.is_gang, {unit.ns, unit.name}}; }

GangCount CountGang(const ClusterCache& cache, const PodKey& key) {
  GangCount count;
  const cluster::Group* group = cache.FindGroup(key);
  if (group == nullptr) return count;
  if (const cluster::PodGroupInfo* info = group->info(); info != nullptr) {
    for (const cluster::TaskMinimum& task : info->min_task_member)
      count.tasks.push_back({task.task, task.min_member, 0, 0});
    count.sub_groups = SubGroups(info->sub_group_policies);
  }
  for (const auto& [name, record] : group->pods) {
    const PodRecord& pod = *record;
    const bool succeeded = pod.info.phase == cluster::PodPhase::kSucceeded;
    if (succeeded) ++count.succeeded;
    if (pod.info.phase == cluster::PodPhase::kFailed) ++count.failed;
    if (pod.info.phase == cluster::PodPhase::kRunning) ++count.running;
    if (pod.info.phase == cluster::PodPhase::kPending) ++count.pending;
    if (pod.info.phase == cluster::PodPhase::kFailed || (pod.info.deleting && !succeeded)) continue;
    const bool occupies = succeeded || pod.IsPlaced();
    ++count.members;
    if (occupies) ++count.occupied;
    if (const size_t sub_group = SubGroupOf(cache, pod, count.sub_groups);
        sub_group != kNoSubGroup) {
      ++count.sub_groups.groups[sub_group].members;
      if (occupies) ++count.sub_groups.groups[sub_group].occupied;
    }
    const size_t task = TaskOf(count.tasks, pod.info.task);
    if (task == kNoTask) continue;
    ++count.tasks[task].members;
    if (occupies) ++count.tasks[task].occupied;
  }
  return count;
}

bool IsWhole(const ClusterCache& cache, const PodKey& group, const std::vector<PodKey>& pods) {
  const cluster::PodGroupInfo* info = InfoOf(cache, group);
  if (info == nullptr) return false;
  GangCount count = CountGang(cache, group);
  for (const PodKey& key : pods) {
    const PodRecord* pod = count.sub_groups.empty() ? nullptr : cache.FindPod(key);
    if (pod == nullptr) continue;
    const size_t at = SubGroupOf(cache, *pod, count.sub_groups);
    if (at != kNoSubGroup) count.sub_groups.groups[at].is_required = true;
  }
  return count.occupied >= info->min_member && count.sub_groups.AreMet() &&
         std::all_of(count.tasks.begin(), count.tasks.end(),
                     [](const TaskCount& task) { return task.Needed() == 0; });
}

Queue BuildQueue(const ClusterCache& cache, const PendingPods& pending,
                 const PriorityClasses& priorities, const std::set<UnitKey>& left_out) {
  Queue queue;
  std::map<PodKey, size_t> gangs;            // position in `queue`
  std::map<size_t, bool> priority_is_given;  // by position: from a PriorityClass
  queue.reserve(pending.size());
  for (const auto& [key, record] : pending) {
    const PodRecord& pod = *record;
    if (!left_out.empty() && left_out.contains(UnitOf(pod.info))) continue;
    if (pod.info.group.empty()) {
      Unit& unit = queue.emplace_back();
      unit.ns = key.ns;
      unit.name = key.name;
      unit.priority = pod.info.priority;
      unit.created = pod.info.created;
      unit.may_preempt = pod.info.may_preempt;
      unit.pods.push_back({key, pod.shape, pod.holder, pod.identity, pod.info.created, kNoTask});
      continue;
    }
    const auto [at, added] = gangs.try_emplace({key.ns, pod.info.group}, queue.size());
    if (added) {
      queue.push_back(MakeGang(cache, at->first, priorities));
      priority_is_given[at->second] = queue.back().priority != INT64_MIN;
      if (queue.back().group_missing) queue.back().created = pod.info.created;
    }
    Unit& unit = queue[at->second];
    unit.may_preempt &= pod.info.may_preempt;
    if (!priority_is_given[at->second]) unit.priority = std::max(unit.priority, pod.info.priority);
    unit.pods.push_back({key, pod.shape, pod.holder, pod.identity, pod.info.created,
                         TaskOf(unit.tasks, pod.info.task),
                         SubGroupOf(cache, pod, unit.sub_groups)});
  }
  for (const auto& [key, position] : gangs) CountReady(queue[position]);
  // Shorter names first: worker-2 before worker-10, so that neighbouring ranks become neighbours
  // on the nodes.
  const auto order = [](const QueuedPod& pod) {
    return std::tuple(pod.created, pod.key.name.size());
  };
  for (const auto& [key, position] : gangs) {
    std::vector<QueuedPod>& pods = queue[position].pods;
    std::stable_sort(pods.begin(), pods.end(),
                     [&](const QueuedPod& a, const QueuedPod& b) { return order(a) < order(b); });
  }
  return queue;
}

}  // namespace muster::scheduler
