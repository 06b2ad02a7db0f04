#include "scheduler/cluster_copy.h"

namespace muster::scheduler {

ClusterCopy::ClusterCopy(const ClusterLists& lists,
                         const std::vector<std::string>& scheduler_names) {
  for (const json::Value& each : lists.namespaces["items"].items()) {
    const json::Value& metadata = each["metadata"];
    cache.UpsertNamespace(metadata["name"].AsString(), cluster::ToLabels(metadata["labels"]));
  }
  for (const json::Value& node : lists.nodes["items"].items())
    cache.UpsertNode(cluster::ToNodeInfo(node));
  for (size_t api = 0; api < lists.pod_groups.size(); ++api) {
    for (const json::Value& group : lists.pod_groups[api]["items"].items())
      cache.UpsertGroup(cluster::ToPodGroupInfo(group, static_cast<cluster::GroupApi>(api)));
  }
  for (const json::Value& each : lists.priority_classes["items"].items())
    priorities[each["metadata"]["name"].Str()] = each["value"].AsInt();
  if (!lists.claims.IsNull()) cache.KeepStorage();
  for (const json::Value& claim : lists.claims["items"].items())
    cache.UpsertClaim(cluster::ToClaimInfo(claim));
  for (const json::Value& volume : lists.volumes["items"].items())
    cache.UpsertVolume(cluster::ToVolumeInfo(volume));
  for (const json::Value& each : lists.storage_classes["items"].items())
    cache.UpsertStorageClass(cluster::ToStorageClassInfo(each));
  for (const json::Value& each : lists.disruption_budgets["items"].items())
    budgets.emplace_back(each["metadata"]["namespace"].Str(), each);
  for (const json::Value& pod : lists.pods["items"].items())
    cache.UpsertPod(cluster::ToPodInfo(pod));
  for (const auto& [key, record] : cache.pods()) {
    if (IsPending(record, scheduler_names)) pending[key] = &record;
  }
}

PreemptionFacts ClusterCopy::Facts() const {
  PreemptionFacts facts = MakePreemptionFacts(cache, priorities);
  for (const auto& [ns, budget] : budgets) AddBudget(ns, budget, cache, facts);
  return facts;
}

UnitAnswer ClusterCopy::Ask(const UnitKey& key) const {
  UnitAnswer answer;
  Queue queue = BuildQueue(cache, pending, priorities, {});
  for (Unit& unit : queue) {
    for (QueuedPod& pod : unit.pods)
      pod.nominated = cache.FindNode(cache.FindPod(pod.key)->info.nominated_node);
  }
  size_t position = 0;
  while (position < queue.size() &&
         UnitKey{queue[position].is_gang, {queue[position].ns, queue[position].name}} != key)
    ++position;
  if (position == queue.size()) return answer;
  answer.waits = true;
  const PlannerConfig config{
      .max_unblock_work = kMaxExplainWork, .explain_only = position, .detail = true};
  const PreemptionFacts facts = PreemptionMatters(queue, cache) ? Facts() : PreemptionFacts{};
  // Later than anything that has started.
  for (UnitPlan& plan : Plan(cache.snapshot(), queue, config, Time::max(), facts).units) {
    if (plan.unit != position) continue;
    for (const Assignment& assignment : plan.assignments) answer.nodes.push_back(assignment.node);
    answer.infeasible = std::move(plan.infeasible);
    if (!answer.infeasible.has_value()) continue;
    if (plan.room == PreemptionPlanner::Outcome::kRoom) RoomIsMade(*answer.infeasible);
    for (const Victim& victim : plan.preemption.victims) {
      const cluster::PodRecord* pod = cache.FindPlaced(victim.placement, victim.serial);
      answer.infeasible->preempts.push_back("pod " + pod->info.ns + "/" + pod->info.name);
    }
  }
  return answer;
}

}  // namespace muster::scheduler
