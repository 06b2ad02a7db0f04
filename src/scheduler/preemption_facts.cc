#include "scheduler/preemption_facts.h"

#include <algorithm>
#include <utility>

namespace muster::scheduler {

PreemptionFacts MakePreemptionFacts(const cluster::ClusterCache& cache,
                                    const PriorityClasses& priorities) {
  PreemptionFacts facts;
  facts.pods = cache.placed_pods();
  for (const auto& [key, group] : cache.groups()) {
    const bool is_placed = std::any_of(group.pods.begin(), group.pods.end(), [](const auto& pod) {
      return pod.second->placement != cluster::kNoIndex;
    });
    if (group.info() == nullptr || !is_placed) continue;
    RunningGang gang;
    gang.ns = key.ns;
    gang.name = key.name;
    gang.min_member = group.info()->min_member;
    gang.count = CountGang(cache, key);
    for (const auto& [name, pod] : group.pods) {
      if (pod->placement != cluster::kNoIndex)
        gang.members.push_back({pod->placement, TaskOf(gang.count.tasks, pod->info.task),
                                SubGroupOf(cache, *pod, gang.count.sub_groups)});
    }
    const auto priority = priorities.find(group.info()->priority_class);
    if (priority != priorities.end()) gang.priority = priority->second;
    facts.gangs.push_back(std::move(gang));
  }
  return facts;
}

const json::Fields& DisruptionBudgetFields() {
  static const json::Fields fields{
      {"spec", "selector"}, {"status", "disruptionsAllowed"}, {"status", "disruptedPods"}};
  return fields;
}

void AddBudget(const std::string& ns, const json::Value& budget, const cluster::ClusterCache& cache,
               PreemptionFacts& facts) {
  const Result<schema::LabelSelector> selector =
      schema::LabelSelector::FromJson(budget["spec"]["selector"]);
  if (!selector.has_value()) return;
  const json::Value& status = budget["status"];
  facts.budgets.push_back({ns, *selector, status["disruptionsAllowed"].AsInt()});
  for (const auto& [name, since] : status["disruptedPods"].members())
    MarkLeaving({ns, name}, cache, facts);
}

namespace {

// It was counted as one that stays: what its gang can do without is less by now.
void LeaveGang(const cluster::PodRecord& pod, PreemptionFacts& facts) {
  const auto gang = std::ranges::find_if(facts.gangs, [&](const RunningGang& each) {
    return each.ns == pod.info.ns && each.name == pod.info.group;
  });
  if (gang == facts.gangs.end()) return;
  const auto member =
      std::ranges::find(gang->members, pod.placement, &RunningGang::Member::placement);
  if (member == gang->members.end()) return;
  --gang->count.occupied;
  if (member->task != kNoTask) --gang->count.tasks[member->task].occupied;
  if (member->sub_group != kNoSubGroup) --gang->count.sub_groups.groups[member->sub_group].occupied;
}

}  // namespace

void MarkLeaving(const cluster::PodKey& pod, const cluster::ClusterCache& cache,
                 PreemptionFacts& facts) {
  const cluster::PodRecord* record = cache.FindPod(pod);
  if (record == nullptr || record->placement == cluster::kNoIndex) return;
  if (std::exchange(facts.pods[record->placement].leaving, true)) return;
  if (!record->info.group.empty()) LeaveGang(*record, facts);
}

bool PreemptionMatters(const Queue& queue, const cluster::ClusterCache& cache) {
  const int64_t lowest = cache.LowestPlacedPriority();
  return std::any_of(queue.begin(), queue.end(), [&](const Unit& unit) {
    return (unit.may_preempt && unit.priority > lowest) ||
           std::any_of(unit.pods.begin(), unit.pods.end(),
                       [](const QueuedPod& pod) { return pod.nominated != cluster::kNoIndex; });
  });
}

int64_t LowestPriority(const PreemptionFacts& facts) {
  int64_t lowest = INT64_MAX;
  for (const cluster::PlacedPod& pod : facts.pods) {
    if (pod.serial != 0) lowest = std::min(lowest, pod.priority);
  }
  return lowest;
}

}  // namespace muster::scheduler
