#include "scheduler/scheduler.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "base/check.h"
#include "base/log.h"
#include "client/lifetime.h"
#include "cluster/cluster_cache.h"
#include "scheduler/binder.h"
#include "scheduler/group_status.h"
#include "scheduler/pending.h"
#include "scheduler/preemptor.h"
#include "scheduler/refused_bindings.h"
#include "scheduler/rules.h"
#include "scheduler/status_publisher.h"
#include "scheduler/volume_binder.h"

namespace muster::scheduler {

using client::ObjectKey;
using cluster::PodKey;

namespace {

// Decisions and reasons taken over from a plan per task of the loop: about a millisecond.
constexpr size_t kStepsPerTask = 256;

// The longest pause after a long plan.
constexpr Duration kMaxPlanPause = seconds(1);

// PodGroups of either kind, PriorityClasses and storage may not exist on a server, and namespaces
// may be out of reach; without them pods of gangs and pods with claims wait, no namespace has
// labels, and the rest goes on.
constexpr Duration kOptionalSyncGrace = seconds(3);

constexpr std::string_view kGatedMessage =
    "Scheduling is blocked due to non-empty scheduling gates";

ObjectKey ToObjectKey(const PodKey& key) { return {key.ns, key.name}; }
PodKey ToPodKey(const ObjectKey& key) { return {key.ns, key.name}; }

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

struct Scheduler::Impl {
  // One plan under way: made on the loop, worked out on the pool, taken over on the loop in slices.
  struct Round {
    Queue queue;
    PlanResult result;
    Time started{};
    size_t next_unit = 0;        // in result.units
    size_t next_assignment = 0;  // of that unit
    bool unit_decided = false;   // its assignments are taken over or dropped
    size_t next_reason = 0;      // in Unit::pods, of a unit of which pods stay pending
    std::shared_ptr<const Infeasible> verdict;  // of that unit, once somebody needs it
    std::string message;
  };

  Impl(client::ApiClient& api_client, client::InformerSet& informers, Pool& worker_pool,
       SchedulerConfig settings)
      : api(api_client),
        pool(worker_pool),
        config(std::move(settings)),
        nodes(informers.Get(client::resources::kNodes, cluster::NodeInfoFields())),
        pods(informers.Get(client::resources::kPods,
                           json::Fields(cluster::PodInfoFields()).Add(WaitReasonFields()))),
        groups(GroupInformersOf(informers)),
        priorities(informers.Get(client::resources::kPriorityClasses, {{"value"}})),
        namespaces(informers.Get(client::resources::kNamespaces, {{"metadata", "labels"}})),
        budgets(informers.Get(client::resources::kPodDisruptionBudgets, DisruptionBudgetFields())),
        claims(
            informers.Get(client::resources::kPersistentVolumeClaims, cluster::ClaimInfoFields())),
        volumes(informers.Get(client::resources::kPersistentVolumes, cluster::VolumeInfoFields())),
        storage_classes(
            informers.Get(client::resources::kStorageClasses, cluster::StorageClassInfoFields())),
        preemptor(api, pods, budgets, cache),
        publisher(
            api, pods, groups,
            [this](const ObjectKey& key, cluster::GroupApi group_api, const json::Value& object) {
              return GroupStatus(key, group_api, object);
            }),
        binder(api, {.binding_of = [this](const PodKey& pod) { return BindingOf(pod); },
                     .on_bound = [this](const PodKey& pod,
                                        const json::Value& binding) { OnBound(pod, binding); },
                     .on_released = [this](const PodKey& pod,
                                           const Status& why) { OnReleased(pod, why); }}),
        volume_binder(api, volumes, cache,
                      {.on_waiting =
                           [this](const PodKey& pod, const std::string& message) {
                             publisher.PodWaits(ToObjectKey(pod),
                                                {std::string(kWaitsForVolumes), message},
                                                kPassingReasonDelay);
                           },
                       .on_ready = [this](const std::vector<PodKey>& unit,
                                          bool partly_bound) { BindReady(unit, partly_bound); },
                       .on_failed =
                           [this](const std::vector<PodKey>& unit, const Status& why) {
                             for (const PodKey& pod : unit) OnReleased(pod, why);
                           }}) {}

  static GroupInformers GroupInformersOf(client::InformerSet& informers) {
    GroupInformers out{};
    for (size_t group_api = 0; group_api < out.size(); ++group_api) {
      out[group_api] =
          &informers.Get(kGroupResources[group_api],
                         json::Fields(cluster::PodGroupInfoFields()).Add({{"status"}}));
    }
    return out;
  }

  // -- What the informers say.

  void Start() {
    Follow(nodes, [this](const ObjectKey& key, const json::Value& after) {
      const cluster::CacheChange change = after.IsNull()
                                              ? cache.RemoveNode(key.name)
                                              : cache.UpsertNode(cluster::ToNodeInfo(after));
      Note(change);
      if (change.changed && preemptor.IsNominated(key.name)) Wake();
      if (after.IsNull()) volume_binder.Look();
    });
    Follow(namespaces, [this](const ObjectKey& key, const json::Value& after) {
      Note(after.IsNull()
               ? cache.RemoveNamespace(key.name)
               : cache.UpsertNamespace(key.name, cluster::ToLabels(after["metadata"]["labels"])));
    });
    Follow(pods, [this](const ObjectKey& key, const json::Value& after) { OnPod(key, after); });
    for (size_t group_api = 0; group_api < groups.size(); ++group_api) {
      Follow(*groups[group_api], [this, group_api](const ObjectKey& key, const json::Value& after) {
        OnGroup(key, static_cast<cluster::GroupApi>(group_api), after);
      });
    }
    FollowStorage();
    Follow(budgets, [](const ObjectKey&, const json::Value&) {});
    Follow(priorities, [this](const ObjectKey& key, const json::Value& after) {
      priority_classes.erase(key.name);
      if (!after.IsNull()) priority_classes[key.name] = after["value"].AsInt();
    });
  }

  void FollowStorage() {
    cache.KeepStorage();
    const auto note = [this](const cluster::CacheChange& change) {
      Note(change);
      if (change.changed) volume_binder.Look();
    };
    Follow(claims, [this, note](const ObjectKey& key, const json::Value& after) {
      note(after.IsNull() ? cache.RemoveClaim({key.ns, key.name})
                          : cache.UpsertClaim(cluster::ToClaimInfo(after)));
    });
    Follow(volumes, [this, note](const ObjectKey& key, const json::Value& after) {
      note(after.IsNull() ? cache.RemoveVolume(key.name)
                          : cache.UpsertVolume(cluster::ToVolumeInfo(after)));
    });
    Follow(storage_classes, [this, note](const ObjectKey& key, const json::Value& after) {
      note(after.IsNull() ? cache.RemoveStorageClass(key.name)
                          : cache.UpsertStorageClass(cluster::ToStorageClassInfo(after)));
    });
  }

  template <class OnChange>
  void Follow(client::Informer& informer, OnChange on_change) {
    client::InformerEvents events;
    events.on_change =
        lifetime.Guard([on_change](const ObjectKey& key, const json::Value&,
                                   const json::Value& after) { on_change(key, after); });
    events.on_synced = lifetime.Guard([this] { Wake(); });
    informer.Subscribe(std::move(events));
  }

  bool Synced() {
    if (!nodes.Synced() || !pods.Synced()) return false;
    const bool groups_known = std::all_of(groups.begin(), groups.end(),
                                          [](const auto* informer) { return informer->Known(); });
    const bool storage_known = claims.Known() && volumes.Known() && storage_classes.Known();
    return (groups_known && priorities.Known() && namespaces.Known() && storage_known) ||
           GraceIsOver();
  }

  bool GraceIsOver() {
    const Time now = api.loop().Now();
    if (!grace_until.has_value()) {
      grace_until = now + kOptionalSyncGrace;
      api.loop().After(kOptionalSyncGrace, lifetime.Guard([this] { Wake(); }));
    }
    return now >= *grace_until;
  }

  void Note(const cluster::CacheChange& change) {
    if (change.capacity_grew) Wake();
  }

  void OnPod(const ObjectKey& key, const json::Value& after) {
    const PodKey pod_key = ToPodKey(key);
    const cluster::PodRecord* before = cache.FindPod(pod_key);
    const std::string old_group = before == nullptr ? "" : before->info.group;
    const std::string old_uid = before == nullptr ? "" : before->info.uid;
    const bool was_placed = before != nullptr && before->IsPlaced();
    const cluster::ShapeIndex old_shape = before == nullptr ? cluster::kNoIndex : before->shape;
    const cluster::CacheChange change =
        after.IsNull() ? cache.RemovePod(pod_key) : cache.UpsertPod(cluster::ToPodInfo(after));
    if (!change.changed) return;
    Note(change);
    volume_binder.Look();
    const cluster::PodRecord* pod = cache.FindPod(pod_key);
    if (!old_group.empty()) GangChanged({key.ns, old_group});
    const std::string& gang = pod == nullptr ? old_group : pod->info.group;
    const bool leaves = pod == nullptr || pod->info.deleting;
    const std::string& uid = pod == nullptr ? old_uid : pod->info.uid;
    if (leaves && !gang.empty() && preemptor.Leaves(pod_key, uid, gang)) Wake();
    if (pod != nullptr && !pod->info.group.empty() && pod->info.group != old_group) {
      GangChanged({key.ns, pod->info.group});
    }
    if (pod != nullptr && pod->shape != old_shape && pending.contains(pod_key)) Wake();
    // Another scheduler's pod may take the room that is being made.
    if (pod != nullptr && !was_placed && preemptor.IsNominated(pod->info.node_name)) Wake();
    Sort(pod_key, pod);
  }

  // Pods that are not pending themselves can make a gang complete or incomplete.
  void GangChanged(const PodKey& group) {
    PublishGroup(group);
    if (group_verdicts.contains(group)) Wake();
  }

  void PublishGroup(const PodKey& key) {
    const cluster::Group* group = cache.FindGroup(key);
    if (group == nullptr) return;
    for (const std::optional<cluster::PodGroupInfo>& object : group->by_api) {
      if (object.has_value()) publisher.GroupChanged(ToObjectKey(key), object->api);
    }
  }

  // Puts the pod where it belongs: to be planned, held by gates, or neither.
  void Sort(const PodKey& key, const cluster::PodRecord* pod) {
    const bool is_pending = pod != nullptr && IsPending(*pod, config.scheduler_names);
    const bool is_gated = pod != nullptr && IsGated(*pod, config.scheduler_names);
    // Assigned also if it was there: the record may be that of a new pod of this name.
    if (is_pending ? pending.insert_or_assign(key, pod).second : pending.erase(key) > 0) {
      verdicts.erase(key);
      Wake();
    }
    if (is_gated) {
      gated.insert(key);
      publisher.PodWaits(ToObjectKey(key), {"SchedulingGated", std::string(kGatedMessage)});
    } else {
      gated.erase(key);
    }
    if (!is_pending) preemptor.Forget(key);
    if (!is_pending && !is_gated) publisher.ForgetPod(ToObjectKey(key));
  }

  void OnGroup(const ObjectKey& key, cluster::GroupApi group_api, const json::Value& after) {
    const PodKey group = ToPodKey(key);
    const cluster::CacheChange change =
        after.IsNull() ? cache.RemoveGroup(group, group_api)
                       : cache.UpsertGroup(cluster::ToPodGroupInfo(after, group_api));
    if (after.IsNull()) group_verdicts.erase(group);
    // Also when only the status changed: it may be a write of ours that was made from less than is
    // known by now, and that was on its way while the right one was compared with an older state.
    publisher.GroupChanged(ToObjectKey(group), group_api);
    if (!change.changed) return;
    GangChanged(group);
    Wake();
  }

  // -- Planning.

  // Something changed that a plan may answer to. Many changes in one go make one plan.
  void Wake() {
    dirty = true;
    if (wake_posted || round != nullptr) return;
    wake_posted = true;
    const Duration wait =
        std::clamp<Duration>(not_before - api.loop().Now(), Duration(0), kMaxPlanPause);
    api.loop().After(wait, lifetime.Guard([this] {
      wake_posted = false;
      StartRound();
    }));
  }

  void StartRound() {
    if (!dirty || round != nullptr || !Synced()) return;
    dirty = false;
    preemptor.EvictRests();
    const Time now = api.loop().Now();
    auto next = std::make_shared<Round>();
    const RefusedBindings::Resting resting = refused.RestingAt(now);
    next->queue = BuildQueue(cache, pending, priority_classes, resting.without_room);
    if (next->queue.empty()) return;
    for (Unit& unit : next->queue) {
      unit.rests = resting.with_room.contains(KeyOf(unit));
      unit.may_preempt &= refused.EvictionPause(KeyOf(unit), now) == nullptr;
    }
    preemptor.Nominate(next->queue);
    // Nobody is evicted before it is known which budgets protect whom.
    PreemptionFacts facts;
    if (PreemptionMatters(next->queue, cache) && (budgets.Known() || GraceIsOver()))
      facts = preemptor.Facts(priority_classes);
    next->started = now;
    round = next;
    ++metrics.plans;
    PlannerConfig planner = config.planner;
    planner.packing = packing;
    pool.Run(
        [next, now, snapshot = cache.snapshot(), planner = std::move(planner),
         facts = std::move(facts)]() mutable {
          next->result = Plan(std::move(snapshot), next->queue, planner, now, facts);
        },
        api.loop(), lifetime.Guard([this] {
          packing = round->result.packing;
          TakeOver();
        }));
  }

  // Turns the plan's decisions into assumptions and bindings, a slice at a time. What changed
  // meanwhile is noticed here: a decision that does not hold any more is dropped with its unit, and
  // planned again.
  void TakeOver() {
    size_t steps = 0;
    for (; round->next_unit < round->result.units.size(); NextUnit()) {
      const UnitPlan& plan = round->result.units[round->next_unit];
      while (!round->unit_decided) {
        if (steps++ >= kStepsPerTask) return ContinueTakeOver();
        if (round->next_assignment == plan.assignments.size() || !Assume(plan)) {
          FinishUnit(plan);
          round->unit_decided = true;
        } else {
          ++round->next_assignment;
        }
      }
      if (!plan.infeasible.has_value()) continue;
      const std::vector<QueuedPod>& pods_of_unit = round->queue[plan.unit].pods;
      for (; round->next_reason < pods_of_unit.size(); ++round->next_reason) {
        if (steps++ >= kStepsPerTask) return ContinueTakeOver();
        GiveReason(pods_of_unit[round->next_reason].key, plan);
      }
    }
    FinishRound();
  }

  void NextUnit() {
    ++round->next_unit;
    round->next_assignment = round->next_reason = 0;
    round->unit_decided = false;
    round->verdict = nullptr;
  }

  void ContinueTakeOver() {
    api.loop().Post(lifetime.Guard([this] { TakeOver(); }));
  }

  bool Assume(const UnitPlan& plan) {
    const Assignment& assignment = plan.assignments[round->next_assignment];
    const PodKey& key = round->queue[plan.unit].pods[assignment.pod].key;
    const cluster::NodeIndex node = cache.FindNode(assignment.node);
    if (!pending.contains(key) || node == cluster::kNoIndex) return false;
    // The pod, its node or both may be others than those that were planned with.
    const cluster::ClusterSnapshot& now = cache.snapshot();
    const cluster::Shape& shape = now.Shape(cache.FindPod(key)->shape);
    const RuleVerdict verdict =
        CheckRules(shape, now.Class(now.ClassOf(node)), now.Node(node).labels_view());
    if (verdict.rule != Rule::kPasses) return false;
    if (!cache.Assume(key, assignment.node, assignment.devices, assignment.volumes)) return false;
    pending.erase(key);
    return true;
  }

  void FinishUnit(const UnitPlan& plan) {
    const Unit& unit = round->queue[plan.unit];
    std::vector<PodKey> decided;
    for (size_t i = 0; i < round->next_assignment; ++i)
      decided.push_back(unit.pods[plan.assignments[i].pod].key);
    if (round->next_assignment < plan.assignments.size() || !StillWhole(unit, decided)) {
      ++metrics.plans_dropped;
      for (const PodKey& pod : decided) PutBack(pod);
      round->next_reason = unit.pods.size();  // what the plan says of it does not hold any more
      return Wake();
    }
    if (!decided.empty()) {
      for (const PodKey& pod : decided) verdicts.erase(pod);
      volume_binder.Bind(decided, unit.occupied > 0);
      if (unit.is_gang) PublishGroup({unit.ns, unit.name});
    }
    metrics.scheduled += decided.size();
    Report(decided.empty() ? "unschedulable" : "scheduled");
    if (unit.is_gang && !plan.infeasible.has_value()) group_verdicts.erase({unit.ns, unit.name});
    Preempt(unit, plan);
  }

  void Preempt(const Unit& unit, const UnitPlan& plan) {
    if (!preemptor.Apply(unit, plan)) {
      ++metrics.plans_dropped;
      return Wake();
    }
    const size_t victims = plan.preemption.victims.size();
    if (victims == 0) return;
    const size_t bucket = static_cast<size_t>(std::bit_width(victims - 1));
    ++metrics.preemption_victims[std::min(bucket, metrics.preemption_victims.size() - 1)];
    metrics.preemption_victims_sum += victims;
  }

  // While the plan was made and taken over, members of the gang may have gone.
  bool StillWhole(const Unit& unit, const std::vector<PodKey>& decided) const {
    return !unit.is_gang || decided.empty() || IsWhole(cache, {unit.ns, unit.name}, decided);
  }

  void PutBack(const PodKey& pod) {
    cache.Forget(pod);
    const cluster::PodRecord* record = cache.FindPod(pod);
    if (record != nullptr && IsPending(*record, config.scheduler_names)) pending[pod] = record;
  }

  void GiveReason(const PodKey& pod, const UnitPlan& plan) {
    if (!pending.contains(pod)) return;
    if (round->verdict == nullptr) {
      const Unit& unit = round->queue[plan.unit];
      Infeasible why = *plan.infeasible;
      if (plan.room == PreemptionPlanner::Outcome::kRoom) RoomIsMade(why);
      if (why.room_is_made) why.preempts = preemptor.VictimsOf(KeyOf(unit));
      if (const auto* pause = refused.EvictionPause(KeyOf(unit), round->started);
          pause != nullptr && !why.room_is_made) {
        why.evicts_after = pause->evicts_after;
        why.refusal = pause->refusal;
      }
      round->message = Explain(why);
      round->verdict = std::make_shared<const Infeasible>(std::move(why));
      if (unit.is_gang) {
        group_verdicts[{unit.ns, unit.name}] = round->verdict;
        PublishGroup({unit.ns, unit.name});
      }
    }
    const Infeasible::Why why = round->verdict->why;
    const bool passing =
        why == Infeasible::Why::kMembersMissing || why == Infeasible::Why::kGroupMissing;
    verdicts[pod] = round->verdict;
    ++metrics.unschedulable;
    publisher.PodWaits(ToObjectKey(pod), {"Unschedulable", round->message},
                       passing ? kPassingReasonDelay : Duration(0));
  }

  void Report(std::string_view result) {
    if (metrics.on_attempt) metrics.on_attempt(result, Seconds(api.loop().Now() - round->started));
  }

  void FinishRound() {
    const Time now = api.loop().Now();
    const Duration took = now - round->started;
    metrics.last_plan_seconds = Seconds(took);
    metrics.preemption_attempts += round->result.preemption_attempts;
    if (round->result.plan_again) dirty = true;
    not_before = now + took;
    // Ten thousand units take milliseconds to free: not on the loop.
    pool.Run([over = std::exchange(round, nullptr)]() mutable { over = nullptr; }, api.loop(),
             [] {});
    if (dirty) Wake();
  }

  // -- Binding.

  // While a gang waited for its volumes, members may have gone.
  void BindReady(const std::vector<PodKey>& unit, bool partly_bound) {
    if (unit.empty()) return;
    const UnitKey key = UnitOf(cache.FindPod(unit.front())->info);
    if (!key.is_gang || IsWhole(cache, key.key, unit)) return binder.Bind(unit, partly_bound);
    const Status why =
        Error(Reason::kConflict, "members of the gang went while its volumes were bound");
    for (const PodKey& pod : unit) OnReleased(pod, why);
  }

  // What the gang has on the node; of a gang that is being bound that is what it will have.
  cluster::DeviceLists GangDevices(const PodKey& group, cluster::NodeIndex node) const {
    cluster::DeviceSet devices;
    const cluster::Group* members = cache.FindGroup(group);
    if (members == nullptr) return {};
    for (const auto& [name, pod] : members->pods) {
      if (pod->placement == cluster::kNoIndex) continue;
      const cluster::Placement& placement = cache.snapshot().At(pod->placement);
      if (placement.node == node) devices.Add(placement.devices);
    }
    cluster::DeviceLists lists;
    for (const size_t position : devices.Positions()) {
      const cluster::Device& device = cache.snapshot().Node(node).devices[position];
      lists[device.resource].push_back(device.id);
    }
    return lists;
  }

  json::Value BindingOf(const PodKey& key) {
    const cluster::PodRecord* pod = cache.FindPod(key);
    const json::Value* object = pods.Find(ToObjectKey(key));
    if (pod == nullptr || object == nullptr || pod->assumed_node.empty() || pod->info.deleting) {
      cache.Forget(key);
      return nullptr;
    }
    const cluster::NodeIndex node = cache.FindNode(pod->assumed_node);
    if (node == cluster::kNoIndex) {
      // Between the decision and a further try; its devices went with it.
      OnReleased(key, Error(Reason::kNotFound, "node {} is gone", pod->assumed_node));
      return nullptr;
    }
    json::Value metadata =
        json::Obj({{"name", key.name}, {"namespace", key.ns}, {"uid", pod->info.uid}});
    if (!pod->assumed_devices.IsEmpty()) {
      std::map<std::string, std::vector<std::string>> chosen;
      for (const size_t position : pod->assumed_devices.Positions()) {
        const cluster::Device& device = cache.snapshot().Node(node).devices[position];
        chosen[device.resource].push_back(device.id);
      }
      json::Value annotations =
          json::Obj({{std::string(cluster::kAssignedDevicesAnnotation),
                      cluster::WriteAssignedDevices(cluster::ShareOutDevices(*object, chosen))}});
      if (!pod->info.group.empty() && cluster::SharesGangSandbox((*object)["metadata"])) {
        annotations = annotations.Set(
            cluster::kGangDevicesAnnotation,
            cluster::WriteGangDevices(GangDevices({key.ns, pod->info.group}, node)));
      }
      metadata = metadata.Set("annotations", annotations);
    }
    return json::Obj(
        {{"apiVersion", "v1"},
         {"kind", "Binding"},
         {"metadata", metadata},
         {"target",
          json::Obj({{"apiVersion", "v1"}, {"kind", "Node"}, {"name", pod->assumed_node}})}});
  }

  void OnBound(const PodKey& pod, const json::Value& binding) {
    const std::string node = binding.Path({"target", "name"}).Str();
    LOG_INFO("scheduler: bound pod={} node={}", pod.ToString(), node);
    publisher.PodBound(ToObjectKey(pod), node);
    if (const cluster::PodRecord* record = cache.FindPod(pod)) refused.Bound(UnitOf(record->info));
  }

  void OnReleased(const PodKey& pod, const Status& refusal) {
    cache.Forget(pod);
    ++metrics.errors;
    if (metrics.on_attempt) metrics.on_attempt("error", 0);
    const cluster::PodRecord* record = cache.FindPod(pod);
    if (record == nullptr || !IsPending(*record, config.scheduler_names)) return Wake();
    pending[pod] = record;
    const Time now = api.loop().Now();
    const RefusedBindings::Pause pause =
        refused.Refused(UnitOf(record->info), preemptor.MadeRoomFor(pod), refusal.message(), now);
    publisher.PodWaits(
        ToObjectKey(pod),
        {"SchedulerError", fmt::format("the binding was refused: {}; next try in {} s",
                                       refusal.message(), Seconds(pause.rests_until - now))});
    if (!record->info.group.empty()) GangChanged({pod.ns, record->info.group});
    // Others may use the room now, this unit when its time has come; and when it may evict again.
    Wake();
    for (const Time later : {pause.rests_until, pause.evicts_after}) {
      if (later > now) api.loop().After(later - now, lifetime.Guard([this] { Wake(); }));
    }
  }

  // -- What others ask.

  json::Value GroupStatus(const ObjectKey& key, cluster::GroupApi group_api,
                          const json::Value& object) {
    const PodKey group = ToPodKey(key);
    const GangCount count = CountGang(cache, group);
    if (count.occupied == count.members) group_verdicts.erase(group);  // nobody waits
    if (group_api == cluster::GroupApi::kSchedulerPlugins)
      return NextPluginsStatus(object, count, OwnersOf(group), api.loop().Now());
    GangVerdict verdict;
    if (const auto found = group_verdicts.find(group); found != group_verdicts.end()) {
      verdict.waits = true;
      verdict.lacks_members = found->second->why == Infeasible::Why::kMembersMissing;
      verdict.lacks_sub_group = verdict.lacks_members && found->second->sub_groups.is_missing;
      verdict.lacks_task = verdict.lacks_members && !found->second->task.empty();
      verdict.message = Explain(*found->second);
    }
    return NextGroupStatus(object, count, verdict, api.loop().Now());
  }

  // "namespace/owner" of the gang's pods, comma-separated, as upstream writes it.
  std::string OwnersOf(const PodKey& group) const {
    const cluster::Group* members = cache.FindGroup(group);
    if (members == nullptr || members->pods.empty()) return "";
    // "pytorchjob default/a"; a pod without an owner is its own holder.
    const std::string& holder = members->pods.begin()->second->info.holder;
    return holder.starts_with("pod ") ? "" : holder.substr(holder.find(' ') + 1);
  }

  json::Value Reason(std::string_view kind, const PodKey& key, const Infeasible& infeasible) const {
    const json::Value facts = ToJson(infeasible);
    json::Value out = json::Obj({{"kind", kind}, {"namespace", key.ns}, {"name", key.name}});
    for (const auto& [name, value] : facts.members()) out = out.Set(name, value);
    return out;
  }

  void RefreshCounts() {
    metrics.pending_gated = gated.size();
    metrics.pending_unschedulable = metrics.pending_backoff = metrics.pending_active = 0;
    const RefusedBindings::Resting resting = refused.RestingAt(api.loop().Now());
    for (const auto& [key, pod] : pending) {
      const UnitKey unit = UnitOf(pod->info);
      if (resting.without_room.contains(unit) || resting.with_room.contains(unit)) {
        ++metrics.pending_backoff;
      } else {
        ++(verdicts.contains(key) ? metrics.pending_unschedulable : metrics.pending_active);
      }
    }
  }

  client::ApiClient& api;
  Pool& pool;
  const SchedulerConfig config;
  client::Informer& nodes;
  client::Informer& pods;
  const GroupInformers groups;
  client::Informer& priorities;
  client::Informer& namespaces;
  client::Informer& budgets;
  client::Informer& claims;
  client::Informer& volumes;
  client::Informer& storage_classes;

  cluster::ClusterCache cache;
  PriorityClasses priority_classes;
  PendingPods pending;
  std::set<PodKey> gated;
  std::map<PodKey, std::shared_ptr<const Infeasible>> verdicts;  // of pending pods
  std::map<PodKey, std::shared_ptr<const Infeasible>>
      group_verdicts;  // of gangs of which a pod is pending
  RefusedBindings refused;

  bool dirty = false;
  bool wake_posted = false;
  std::shared_ptr<Round> round;
  std::shared_ptr<const Packing> packing;  // of the last plan
  Time not_before{};
  std::optional<Time> grace_until;
  SchedulerMetrics metrics;

  Preemptor preemptor;
  StatusPublisher publisher;
  Binder binder;
  VolumeBinder volume_binder;
  client::Lifetime lifetime;
};

Scheduler::Scheduler(client::ApiClient& api, client::InformerSet& informers, Pool& pool,
                     SchedulerConfig config)
    : impl_(std::make_unique<Impl>(api, informers, pool, std::move(config))) {}

Scheduler::~Scheduler() = default;

void Scheduler::Start() { impl_->Start(); }

SchedulerMetrics& Scheduler::metrics() {
  impl_->RefreshCounts();
  return impl_->metrics;
}

json::Value Scheduler::ExplainPod(std::string_view ns, std::string_view name) const {
  const PodKey key{std::string(ns), std::string(name)};
  const auto found = impl_->verdicts.find(key);
  return found == impl_->verdicts.end() ? json::Value() : impl_->Reason("Pod", key, *found->second);
}

json::Value Scheduler::ExplainGroup(std::string_view ns, std::string_view name) const {
  const PodKey key{std::string(ns), std::string(name)};
  const auto found = impl_->group_verdicts.find(key);
  return found == impl_->group_verdicts.end() ? json::Value()
                                              : impl_->Reason("PodGroup", key, *found->second);
}

bool Scheduler::Idle() const {
  return !impl_->dirty && impl_->round == nullptr && impl_->binder.Idle() &&
         impl_->volume_binder.Idle() && impl_->preemptor.Idle() && impl_->publisher.Idle();
}

}  // namespace muster::scheduler
