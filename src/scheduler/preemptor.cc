#include "scheduler/preemptor.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/log.h"
#include "scheduler/binder.h"
#include "schema/conditions.h"
#include "schema/disruption_target.h"

namespace muster::scheduler {

using client::ObjectKey;
using cluster::PodKey;

namespace {

constexpr std::string_view kReason = "PreemptionByScheduler";

client::Target PodTarget(const PodKey& pod, std::string subresource) {
  return {client::resources::kPods, pod.ns, pod.name, std::move(subresource)};
}

json::Value StatusPatch(std::string_view field, json::Value value) {
  return json::Obj({{"status", json::Obj({{std::string(field), std::move(value)}})}});
}

}  // namespace

Preemptor::Preemptor(client::ApiClient& api, client::Informer& pods, client::Informer& budgets,
                     const cluster::ClusterCache& cache)
    : api_(api),
      pods_(pods),
      budgets_(budgets),
      cache_(cache),
      events_(api, "default-scheduler", "") {}

// -- Gangs that were interrupted while they went.

bool Preemptor::Leaves(const PodKey& pod, const std::string& uid, const std::string& gang) {
  std::optional<Time> since;
  if (const json::Value* object = pods_.Find({pod.ns, pod.name}); object != nullptr) {
    const json::Value& condition =
        schema::FindCondition(object->Path({"status", "conditions"}), schema::kDisruptionTarget);
    if (condition["status"].AsString() == "True" && condition["reason"].AsString() == kReason)
      since = ParseTime(condition["lastTransitionTime"].AsString());
  } else if (const auto known = evictions_.find(pod); known != evictions_.end()) {
    // Not another one of its name, which went by itself.
    if (known->second.done && known->second.uid == uid) since = api_.loop().Now();
  }
  if (!since.has_value()) return false;
  Time& last = breaking_[{pod.ns, gang}];
  last = std::max(last, *since);
  return true;
}

void Preemptor::EvictRests() {
  for (const auto& [gang, since] : std::exchange(breaking_, {})) {
    const cluster::Group* group = cache_.FindGroup(gang);
    if (group == nullptr || group->info() == nullptr || IsWhole(cache_, gang, {})) continue;
    for (const auto& [name, pod] : group->pods) {
      if (pod->placement == cluster::kNoIndex || pod->info.deleting) continue;
      if (pod->info.created > since) continue;  // it came in the place of one that went
      const PodKey key{gang.ns, name};
      Eviction& eviction = evictions_[key];
      if (eviction.uid != pod->info.uid) {
        eviction = {};
        eviction.uid = pod->info.uid;
        eviction.scheduler_name = pod->info.scheduler_name;
        LOG_INFO("scheduler: preempts the rest of a gang pod={}", key.ToString());
        ready_.push_back({true, key});
      }
      eviction.is_rest = true;
    }
  }
  SchedulePump();
}

// -- Before a plan.

std::string Preemptor::NominatedNodeOf(const PodKey& pod) const {
  if (const auto found = nominations_.find(pod); found != nominations_.end())
    return found->second.node;
  const cluster::PodRecord* record = cache_.FindPod(pod);
  return record == nullptr ? "" : record->info.nominated_node;
}

void Preemptor::Nominate(Queue& queue) {
  DropSeenNominations();
  nominated_nodes_.clear();
  for (Unit& unit : queue) {
    for (QueuedPod& pod : unit.pods) {
      const std::string node = NominatedNodeOf(pod.key);
      if (node.empty()) continue;
      pod.nominated = cache_.FindNode(node);
      nominated_nodes_.insert(node);
    }
  }
}

PreemptionFacts Preemptor::Facts(const PriorityClasses& priorities) {
  DropOldEvictions();
  PreemptionFacts facts = MakePreemptionFacts(cache_, priorities);
  for (const auto& [pod, eviction] : evictions_) MarkLeaving(pod, cache_, facts);
  for (const auto& [key, object] : budgets_.objects()) AddBudget(key.ns, object, cache_, facts);
  return facts;
}

// Victims that are gone, and those for whom nobody waits any more.
void Preemptor::DropOldEvictions() {
  std::erase_if(evictions_, [&](const auto& entry) {
    const auto& [pod, eviction] = entry;
    const cluster::PodRecord* record = cache_.FindPod(pod);
    const bool is_there = record != nullptr && record->info.uid == eviction.uid &&
                          record->placement != cluster::kNoIndex;
    return !is_there || (!eviction.done && !record->info.deleting && !StillWaits(eviction));
  });
}

bool Preemptor::StillWaits(const Eviction& eviction) const {
  if (eviction.is_rest) return true;
  const cluster::PodRecord* record = cache_.FindPod(eviction.preemptor);
  return record != nullptr && record->info.uid == eviction.preemptor_uid && !record->IsPlaced() &&
         !record->info.deleting && !record->info.IsFinished();
}

// -- After a plan.

bool Preemptor::Apply(const Unit& unit, const UnitPlan& plan) {
  if (plan.room == PreemptionPlanner::Outcome::kUndecided) {
    for (const QueuedPod& pod : unit.pods) {
      const cluster::PodRecord* record = cache_.FindPod(pod.key);
      const bool waits = record != nullptr && !record->IsPlaced();
      // Whatever becomes of it, not on a node that is gone.
      if (waits && cache_.FindNode(NominatedNodeOf(pod.key)) == cluster::kNoIndex)
        SetNomination(pod.key, "");
    }
    return true;
  }
  std::vector<const cluster::PodRecord*> victims;
  for (const Victim& victim : plan.preemption.victims) {
    victims.push_back(cache_.FindPlaced(victim.placement, victim.serial));
    if (victims.back() == nullptr) return false;
  }
  std::map<size_t, std::string> nodes;
  for (const Nomination& nomination : plan.preemption.nominations)
    nodes[nomination.pod] = nomination.node;
  std::map<std::string, PodKey> nominee_on;
  for (size_t position = 0; position < unit.pods.size(); ++position) {
    const PodKey& pod = unit.pods[position].key;
    const cluster::PodRecord* record = cache_.FindPod(pod);
    if (record == nullptr || record->IsPlaced()) continue;
    SetNomination(pod, nodes[position]);
    if (!nodes[position].empty()) nominee_on.try_emplace(nodes[position], pod);
  }
  if (nominee_on.empty()) return victims.empty();
  for (const cluster::PodRecord* victim : victims) {
    const PodKey key{victim->info.ns, victim->info.name};
    const auto nominee = nominee_on.find(victim->info.node_name);
    const auto& [node, preemptor] = nominee == nominee_on.end() ? *nominee_on.begin() : *nominee;
    const cluster::PodFacts& whose = cache_.FindPod(preemptor)->info;
    if (const auto known = evictions_.find(key);
        known != evictions_.end() && known->second.uid == victim->info.uid) {
      continue;
    }
    evictions_[key] = {victim->info.uid,     preemptor, whose.uid,
                       whose.scheduler_name, node,      UnitOf(whose)};
    LOG_INFO("scheduler: preempts pod={} for={} node={}", key.ToString(), preemptor.ToString(),
             node);
    ready_.push_back({true, key});
  }
  SchedulePump();
  return true;
}

void Preemptor::SetNomination(const PodKey& pod, const std::string& node) {
  if (!node.empty()) nominated_nodes_.insert(node);
  if (NominatedNodeOf(pod) == node) return;
  Wanted& wanted = nominations_[pod];
  wanted.node = node;
  wanted.revision.reset();
  if (std::exchange(wanted.busy, true)) return;
  ready_.push_back({false, pod});
  SchedulePump();
}

std::vector<std::string> Preemptor::VictimsOf(const UnitKey& unit) const {
  std::vector<std::string> names;
  for (const auto& [pod, eviction] : evictions_) {
    if (eviction.unit == unit) names.push_back("pod " + pod.ToString());
  }
  return names;
}

void Preemptor::Forget(const PodKey& pod) { nominations_.erase(pod); }

// -- Writes.

void Preemptor::SchedulePump() {
  if (pump_posted_ || ready_.empty() || in_flight_ >= kMaxPreemptionWritesInFlight) return;
  pump_posted_ = true;
  api_.loop().Post(lifetime_.Guard([this] {
    pump_posted_ = false;
    while (!ready_.empty() && in_flight_ < kMaxPreemptionWritesInFlight) {
      const Job job = std::move(ready_.front());
      ready_.pop_front();
      if (job.is_eviction) {
        SendEviction(job.pod);
      } else {
        SendNomination(job.pod);
      }
    }
  }));
}

void Preemptor::RetryLater(Job job, int attempts) {
  ++backing_off_;
  api_.loop().After(BindBackoff(attempts), lifetime_.Guard([this, job = std::move(job)] {
    --backing_off_;
    ready_.push_back(job);
    SchedulePump();
  }));
}

void Preemptor::SendNomination(const PodKey& pod) {
  const auto found = nominations_.find(pod);
  if (found == nominations_.end()) return;
  const std::string& node = found->second.node;
  const json::Value patch =
      StatusPatch("nominatedNodeName", node.empty() ? json::Value() : json::Value(node));
  ++in_flight_;
  api_.Patch(PodTarget(pod, "status"), client::PatchType::kStrategic, patch,
             lifetime_.Guard([this, pod, node](Result<json::Value> answer) {
               --in_flight_;
               OnNominated(pod, node, answer);
               SchedulePump();
             }));
}

void Preemptor::OnNominated(const PodKey& pod, const std::string& node,
                            const Result<json::Value>& answer) {
  const auto found = nominations_.find(pod);
  if (found == nominations_.end()) return;
  Wanted& wanted = found->second;
  if (!answer.has_value() && answer.error().reason() == Reason::kNotFound) {
    nominations_.erase(found);
  } else if (!answer.has_value()) {
    LOG_WARN("scheduler: could not nominate pod={} error={}", pod.ToString(),
             answer.error().ToString());
    RetryLater({false, pod}, ++wanted.attempts);
  } else if (wanted.node != node) {
    ready_.push_back({false, pod});
  } else {
    wanted.busy = false;
    wanted.attempts = 0;
    wanted.revision = client::RevisionOf(*answer);
  }
}

// What the informer shows by now is the truth, also when others write it.
void Preemptor::DropSeenNominations() {
  const uint64_t seen = pods_.SeenRevision();
  std::erase_if(nominations_, [&](const auto& entry) {
    return entry.second.revision.has_value() && *entry.second.revision <= seen;
  });
}

void Preemptor::SendEviction(const PodKey& pod) {
  const auto found = evictions_.find(pod);
  const json::Value* object = pods_.Find({pod.ns, pod.name});
  if (found == evictions_.end() || object == nullptr) return;
  const Eviction& eviction = found->second;
  const bool is_there = (*object)["metadata"]["uid"].AsString() == eviction.uid;
  if (!is_there || !StillWaits(eviction)) {
    evictions_.erase(found);
    return;
  }
  const auto step = [&](bool is_delete) {
    ++in_flight_;
    return lifetime_.Guard([this, pod, uid = eviction.uid, is_delete,
                            victim = *object](Result<json::Value> answer) {
      --in_flight_;
      OnEvictionStep(pod, uid, is_delete, victim, answer.has_value() ? Status() : answer.error());
      SchedulePump();
    });
  };
  if (eviction.has_condition) {
    client::DeleteOptions options;
    options.precondition_uid = eviction.uid;
    return api_.Delete(PodTarget(pod, ""), options, step(true));
  }
  const json::Value condition = schema::DisruptionTarget(
      *object, kReason,
      eviction.scheduler_name + ": preempting to accommodate a higher priority pod",
      api_.loop().Now());
  api_.Patch(PodTarget(pod, "status"), client::PatchType::kStrategic,
             StatusPatch("conditions", json::List({condition})), step(false));
}

void Preemptor::OnEvictionStep(const PodKey& pod, const std::string& uid, bool is_delete,
                               const json::Value& victim, const Status& status) {
  const auto found = evictions_.find(pod);
  if (found == evictions_.end() || found->second.uid != uid) return;
  Eviction& eviction = found->second;
  // A conflict may be with another write of the same pod. If it is another pod, the informer will
  // show it.
  if (!status.ok() && status.reason() != Reason::kNotFound) {
    LOG_WARN("scheduler: could not preempt pod={} error={}", pod.ToString(), status.ToString());
    return RetryLater({true, pod}, ++eviction.attempts);
  }
  if (!status.ok() || is_delete) eviction.done = true;
  if (eviction.done) {
    if (status.ok()) {
      events_.Record(victim, client::EventType::kNormal, "Preempted",
                     eviction.preemptor_uid.empty()
                         ? std::string("Preempted with the rest of its gang")
                         : fmt::format("Preempted by pod {} on node {}", eviction.preemptor_uid,
                                       eviction.node));
    }
    return;
  }
  eviction.has_condition = true;
  ready_.push_back({true, pod});
}

}  // namespace muster::scheduler
