#include "training/job_pass.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/bounded_seconds.h"
#include "schema/conditions.h"
#include "schema/disruption_target.h"
#include "schema/pod_phase.h"
#include "training/mpi.h"
#include "training/pods.h"
#include "training/restarts.h"
#include "training/status.h"

namespace muster::training {
namespace {

using client::EventType;
using client::Reconciled;
using client::Target;
namespace resources = client::resources;

std::string_view PhaseOf(const json::Value& pod) { return pod["status"]["phase"].AsString(); }
bool IsTerminating(const json::Value& object) {
  return object["metadata"].Has("deletionTimestamp");
}
std::string_view NameOf(const json::Value& object) { return object["metadata"]["name"].AsString(); }
std::string_view UidOf(const json::Value& object) { return object["metadata"]["uid"].AsString(); }

// Of the container that trains; nullopt when the pod failed without one (evicted, lost with its
// node).
std::optional<int64_t> ExitCodeOf(const Replica& replica, const json::Value& pod) {
  for (const json::Value& container : pod["status"]["containerStatuses"].items()) {
    if (container["name"].AsString() == replica.main_container)
      return container["state"]["terminated"]["exitCode"].Int();
  }
  return std::nullopt;
}

// Restarts by the node, in place.
int64_t RestartCountOf(const json::Value& pod) {
  int64_t sum = 0;
  for (const char* kind : {"initContainerStatuses", "containerStatuses"}) {
    for (const json::Value& container : pod["status"][kind].items())
      sum += container["restartCount"].AsInt();
  }
  return sum;
}

// The node is no more: the pod did not fail, and it will be gone in a moment.
bool WentWithItsNode(const json::Value& pod) {
  return schema::FindCondition(pod["status"]["conditions"], schema::kDisruptionTarget)["reason"]
             .AsString() == "DeletionByPodGC";
}

constexpr int64_t kFirstRetryableExitCode = 128;

bool IsRetryable(const Replica& replica, const json::Value& pod) {
  switch (replica.restart_policy) {
    case RestartPolicy::kNever:
      return false;
    case RestartPolicy::kAlways:
    case RestartPolicy::kOnFailure:
      return true;
    case RestartPolicy::kExitCode:
      return ExitCodeOf(replica, pod).value_or(kFirstRetryableExitCode) >= kFirstRetryableExitCode;
  }
  return false;
}

// The pods of one replica type in the job's present epoch, and what they amount to.
struct Census {
  const Replica* replica = nullptr;
  std::map<int64_t, const json::Value*> pods;  // by index
  ReplicaCounts counts;
  std::vector<const json::Value*> failed;  // not yet counted
};

class Pass {
 public:
  Pass(const Job& job, const JobChildren& children, Time now)
      : job_(job),
        children_(children),
        now_(now),
        restarts_(RestartsOf(job.object)),
        status_(job.object["status"]) {}

  Reconciled Run() {
    out_.subject = job_.object;
    if (IsFinished(status_)) {
      CleanUp();
      return std::move(out_);
    }
    if (status_["conditions"].empty()) {
      SetCondition(kCreated, true, ReasonFor("Created"),
                   fmt::format("{} {} is created.", Kind(), job_.name));
    }
    if (job_.run_policy.suspend) {
      Suspend();
    } else {
      Proceed();
    }
    return std::move(out_);
  }

 private:
  Target JobTarget() const { return {job_.Resource(), job_.ns, job_.name, ""}; }

  std::string_view Kind() const { return job_.kind->kind; }
  // ReasonFor("Running")
  std::string ReasonFor(std::string_view what) const { return fmt::format("{}{}", Kind(), what); }

  void SetCondition(std::string_view type, bool holds, std::string reason, std::string message) {
    status_ = WithCondition(status_, {type, holds, std::move(reason), std::move(message)}, now_);
  }

  void JobEvent(EventType type, std::string reason, std::string message) {
    out_.Event(job_.object, type, std::move(reason), std::move(message));
  }

  // First of all writes: a pass whose other writes fail has at least said where the job stands.
  void WriteStatus() {
    if (status_ == job_.object["status"]) return;
    Target target = JobTarget();
    target.subresource = "status";
    out_.writes.insert(
        out_.writes.begin(),
        {client::Write::Verb::kUpdate, target, job_.object.Set("status", status_), {}});
  }

  void Delete(const client::Resource& resource, const json::Value& object) {
    if (IsTerminating(object)) return;
    client::DeleteOptions options;
    options.precondition_uid = std::string(UidOf(object));
    options.propagation_policy = "Background";
    out_.Delete({resource, job_.ns, std::string(NameOf(object)), ""}, std::move(options));
  }

  void DeletePod(const json::Value& pod) {
    if (IsTerminating(pod)) return;
    Delete(resources::kPods, pod);
    JobEvent(EventType::kNormal, "SuccessfulDeletePod",
             fmt::format("Deleted pod: {}", NameOf(pod)));
  }

  void DeleteServiceOf(const json::Value& pod) {
    for (const json::Value& service : children_.services) {
      if (NameOf(service) == NameOf(pod)) Delete(resources::kServices, service);
    }
  }

  // A PodGroup of the job's name that somebody else made is theirs to keep.
  void DeletePodGroup() {
    if (client::ControllerOf(children_.pod_group)["uid"].AsString() == job_.uid) {
      Delete(resources::kPodGroups, children_.pod_group);
    }
  }

  void DeleteAutoscaler() {
    if (client::ControllerOf(children_.autoscaler)["uid"].AsString() == job_.uid) {
      Delete(resources::kHorizontalPodAutoscalers, children_.autoscaler);
    }
  }

  // ---- a job that has ended ----

  void CleanUp() {
    DeletePodGroup();
    DeleteAutoscaler();
    const CleanPodPolicy policy = job_.run_policy.clean_pod_policy;
    for (const json::Value& pod : children_.pods) {
      const bool finished = schema::IsFinalPhase(PhaseOf(pod));
      if (policy == CleanPodPolicy::kNone || (policy == CleanPodPolicy::kRunning && finished))
        continue;
      DeletePod(pod);
      DeleteServiceOf(pod);
    }
    if (policy == CleanPodPolicy::kAll) {
      for (const json::Value& service : children_.services) {
        const bool with_pod =
            std::any_of(children_.pods.begin(), children_.pods.end(), [&](const json::Value& pod) {
              return NameOf(pod) == NameOf(service) && !IsTerminating(pod);
            });
        if (!with_pod) Delete(resources::kServices, service);
      }
    }
    DeleteAfterTtl();
  }

  void DeleteAfterTtl() {
    if (!job_.run_policy.ttl_seconds_after_finished) return;
    std::optional<Time> end = ParseTime(status_["completionTime"].AsString());
    // A job that another controller finished may lack it.
    const json::Value& conditions = status_["conditions"];
    if (!end)
      end = ParseTime(conditions.At(conditions.size() - 1)["lastTransitionTime"].AsString());
    if (!end) return;
    const Time due = *end + BoundedSeconds(*job_.run_policy.ttl_seconds_after_finished);
    if (now_ < due) return out_.LookAgainAt(due);
    if (IsTerminating(job_.object)) return;
    client::DeleteOptions options;
    options.precondition_uid = std::string(UidOf(job_.object));
    // Its time to live may have become longer, or somebody deletes it in another way by now.
    options.precondition_resource_version = job_.object["metadata"]["resourceVersion"].Str();
    options.propagation_policy = "Background";
    out_.Delete(JobTarget(), std::move(options));
  }

  // ---- suspended ----

  void Suspend() {
    for (const json::Value& pod : children_.pods) DeletePod(pod);
    for (const json::Value& service : children_.services) Delete(resources::kServices, service);
    DeletePodGroup();
    DeleteAutoscaler();
    if (!HasCondition(status_, kSuspended)) {
      std::string message = fmt::format("{} {} is suspended.", Kind(), job_.name);
      JobEvent(EventType::kNormal, ReasonFor("Suspended"), message);
      SetCondition(kSuspended, true, ReasonFor("Suspended"), std::move(message));
    }
    TakeCensus();
    for (Census& census : census_) census.counts.active = 0;
    WriteReplicaStatuses();
    WriteStatus();
  }

  void Resume() {
    if (!HasCondition(status_, kSuspended)) return;
    std::string message = fmt::format("{} {} is resumed.", Kind(), job_.name);
    JobEvent(EventType::kNormal, ReasonFor("Resumed"), message);
    SetCondition(kSuspended, false, ReasonFor("Resumed"), std::move(message));
    status_ = status_.Set("startTime", FormatTime(now_));
  }

  // ---- a job on its way ----

  void Proceed() {
    Resume();
    if (!status_.Has("startTime")) status_ = status_.Set("startTime", FormatTime(now_));
    TakeCensus();
    WriteReplicaStatuses();
    if (Succeeded()) return Succeed();
    if (PastDeadline()) {
      return Fail(fmt::format(
          "Job {} has failed because it was active longer than specified deadline", job_.name));
    }
    if (std::optional<std::string> why = PermanentFailure()) return Fail(std::move(*why));
    if (PastBackoffLimit(0)) return FailAtBackoffLimit();
    if (const auto [failures, type] = NewFailures(); failures > 0) {
      if (PastBackoffLimit(failures)) return FailAtBackoffLimit();
      return Restart(failures, fmt::format("{} {} is restarting because {} {} replica(s) failed.",
                                           Kind(), job_.name, failures, type));
    }
    if (std::optional<std::string> why = WhyGangMustRestart()) return Restart(0, std::move(*why));
    RemoveOldPods();
    MakeChildren();
    ReportProgress();
    WriteStatus();
  }

  void TakeCensus() {
    for (const Replica& replica : job_.replicas) census_.push_back({&replica, {}, {}, {}});
    for (const json::Value& pod : children_.pods) {
      const std::optional<ReplicaId> id = ReplicaOfPod(pod);
      const auto census = std::find_if(census_.begin(), census_.end(), [&id](const Census& entry) {
        return id && entry.replica->LowerType() == id->lower_type;
      });
      if (census == census_.end() || id->index < 0 || id->index >= census->replica->count) {
        surplus_.push_back(&pod);
      } else if (job_.RestartsAsGang() && EpochOf(pod) < restarts_.epoch) {
        stale_.push_back(&pod);
      } else if (IsReplaced(pod)) {
        stale_.push_back(&pod);
        census->pods[id->index] = &pod;
      } else {
        Count(*census, id->index, pod);
      }
    }
  }

  // An elastic job's failed pod whose failure is counted; its name is free once it is gone.
  bool IsReplaced(const json::Value& pod) const {
    const auto& uids = restarts_.replaced_pods;
    return std::find(uids.begin(), uids.end(), UidOf(pod)) != uids.end();
  }

  static void Count(Census& census, int64_t index, const json::Value& pod) {
    census.pods[index] = &pod;
    if (PhaseOf(pod) == "Failed") {
      ++census.counts.failed;
      // Who was told to go (deleted, drained, evicted for others) did not fail by itself.
      if (!WentWithItsNode(pod) && !IsTerminating(pod)) census.failed.push_back(&pod);
    } else if (PhaseOf(pod) == "Succeeded") {
      ++census.counts.succeeded;
    } else if (PhaseOf(pod) == "Running" && !IsTerminating(pod)) {
      ++census.counts.active;
    }
  }

  void WriteReplicaStatuses() {
    json::Value statuses;
    for (const Census& census : census_) {
      statuses = statuses.Set(census.replica->type,
                              ReplicaStatus(census.counts, SelectorOf(job_, *census.replica)));
    }
    status_ = status_.Set("replicaStatuses", statuses);
  }

  const Census* Of(std::string_view type) const {
    for (const Census& census : census_) {
      if (census.replica->type == type) return &census;
    }
    return nullptr;
  }

  // The end of the role that leads is the job's; without one the workers decide.
  bool Succeeded() const {
    if (const Replica* leader = job_.Leader())
      return Of(leader->type)->counts.succeeded == leader->count;
    const Census* workers = Of(kWorker);
    if (workers == nullptr) return false;
    if (workers->counts.succeeded == workers->replica->count) return true;
    switch (job_.success_rule) {
      case SuccessRule::kAllWorkers:
        return false;
      case SuccessRule::kAnyWorker:
        return workers->counts.succeeded > 0;
      case SuccessRule::kFirstWorker: {
        const auto first = workers->pods.find(0);
        return first != workers->pods.end() && PhaseOf(*first->second) == "Succeeded";
      }
    }
    return false;
  }

  void Succeed() {
    for (Census& census : census_) {
      census.counts.succeeded += std::exchange(census.counts.active, 0);
    }
    WriteReplicaStatuses();
    Finish(kSucceeded, EventType::kNormal,
           fmt::format("{} {} is successfully completed.", Kind(), job_.name));
  }

  void Fail(std::string message) { Finish(kFailed, EventType::kWarning, std::move(message)); }

  void FailAtBackoffLimit() {
    Fail(fmt::format("Job {} has failed because it has reached the specified backoff limit",
                     job_.name));
  }

  // Every end has a completionTime: the TTL counts from it.
  void Finish(std::string_view type, EventType event, std::string message) {
    const std::string reason = ReasonFor(type);
    JobEvent(event, reason, message);
    status_ = status_.Set("completionTime", FormatTime(now_));
    SetCondition(type, true, reason, std::move(message));
    WriteStatus();
  }

  bool PastDeadline() {
    if (!job_.run_policy.active_deadline_seconds) return false;
    const std::optional<Time> start = ParseTime(status_["startTime"].AsString());
    if (!start) return false;
    const Time due = *start + BoundedSeconds(*job_.run_policy.active_deadline_seconds);
    if (now_ >= due) return true;
    out_.LookAgainAt(due);
    return false;
  }

  std::optional<std::string> PermanentFailure() const {
    for (const Census& census : census_) {
      const auto permanent = std::count_if(
          census.failed.begin(), census.failed.end(),
          [&](const json::Value* pod) { return !IsRetryable(*census.replica, *pod); });
      if (permanent == 0) continue;
      return fmt::format("{} {} is failed because {} {} replica(s) failed.", Kind(), job_.name,
                         permanent, census.replica->type);
    }
    return std::nullopt;
  }

  // How many failures are new, and of which type the first is. A gang's failures of one moment are
  // one restart.
  std::pair<int64_t, std::string> NewFailures() const {
    int64_t failures = 0;
    std::string type;
    for (const Census& census : census_) {
      if (census.failed.empty()) continue;
      if (type.empty()) type = census.replica->type;
      failures += static_cast<int64_t>(census.failed.size());
    }
    return {failures, type};
  }

  int64_t RestartsFor(int64_t failures) const {
    return job_.RestartsAsGang() ? std::min<int64_t>(failures, 1) : failures;
  }

  // Restarts by the node that are not in the job's count yet.
  int64_t RestartsInPlace() const {
    int64_t sum = 0;
    for (const Census& census : census_) {
      if (census.replica->restart_policy == RestartPolicy::kNever) continue;
      for (const auto& [index, pod] : census.pods) {
        if (PhaseOf(*pod) == "Running") sum += RestartCountOf(*pod);
      }
    }
    return sum;
  }

  // Recreations may go up to the limit; restarts in place reach it (both as upstream, but
  // recreations add up here).
  bool PastBackoffLimit(int64_t failures) const {
    if (!job_.run_policy.backoff_limit) return false;
    const int64_t limit = *job_.run_policy.backoff_limit;
    const int64_t in_place = RestartsInPlace();
    if (failures > 0) return restarts_.count + in_place + RestartsFor(failures) > limit;
    return in_place > 0 && restarts_.count + in_place >= limit;
  }

  std::optional<std::string> WhyGangMustRestart() const {
    if (!job_.RestartsAsGang()) return std::nullopt;
    const std::string members = std::to_string(job_.TotalReplicas());
    const bool was_whole = WasWhole();
    for (const Census& census : census_) {
      for (const auto& [index, pod] : census.pods) {
        if ((*pod)["metadata"]["annotations"][kMembersAnnotation].AsString(members) != members) {
          return fmt::format("{} {} is restarting because its number of replicas is now {}.",
                             Kind(), job_.name, members);
        }
        if (was_whole && (IsTerminating(*pod) || WentWithItsNode(*pod)))
          return WhyLost(census, index);
      }
      if (MayComeLater(census)) continue;
      for (int64_t index = 0; was_whole && index < census.replica->count; ++index) {
        if (!census.pods.contains(index)) return WhyLost(census, index);
      }
    }
    return std::nullopt;
  }

  // A launcher that is made when its workers are ready, and has not run yet.
  bool MayComeLater(const Census& census) const {
    return job_.ssh && job_.ssh->waits_for_workers && census.replica->leads &&
           !HasCondition(status_, kRunning);
  }

  bool IsAwaited(const Census& census) const {
    const Census* workers = Of(kWorker);
    if (!MayComeLater(census) || workers == nullptr) return false;
    return static_cast<int64_t>(workers->pods.size()) < workers->replica->count ||
           std::ranges::any_of(
               workers->pods,
               [](const auto& entry) {
                 return !schema::ConditionHolds((*entry.second)["status"]["conditions"], "Ready");
               });
  }

  // Whether all pods of this epoch existed at some time, so that one that is missing was lost and
  // is not still to be made. A gang is bound only when it is whole: one bound member is a witness.
  bool WasWhole() const {
    const bool running = HasCondition(status_, kRunning);
    const int64_t total = job_.TotalReplicas();
    const bool bound_whole =
        job_.run_policy.scheduling_policy["minAvailable"].AsInt(total) >= total;
    for (const Census& census : census_) {
      for (const auto& [index, pod] : census.pods) {
        if (running || (bound_whole && (*pod)["spec"].Has("nodeName"))) return true;
      }
    }
    return false;
  }

  std::string WhyLost(const Census& census, int64_t index) const {
    return fmt::format("{} {} is restarting because pod {} was lost.", Kind(), job_.name,
                       ReplicaName(job_.name, census.replica->LowerType(), index));
  }

  // Nothing but the count: what follows from it is the next pass's work.
  void Restart(int64_t failures, std::string message) {
    Restarts next = restarts_;
    next.restarted_at = now_;
    if (failures > 0) next.count += RestartsFor(failures) + RestartsLostWithPods();
    if (job_.RestartsAsGang()) {
      ++next.epoch;
    } else {
      std::erase_if(next.replaced_pods, [this](const std::string& uid) {
        return std::none_of(children_.pods.begin(), children_.pods.end(),
                            [&uid](const json::Value& pod) { return UidOf(pod) == uid; });
      });
      for (const Census& census : census_) {
        for (const json::Value* pod : census.failed) next.replaced_pods.emplace_back(UidOf(*pod));
      }
    }
    out_.PatchMerge(JobTarget(), RestartsPatch(job_.object, next));
    for (const Census& census : census_) {
      for (const json::Value* pod : census.failed) ExitEvent(*census.replica, *pod);
    }
    JobEvent(EventType::kWarning, ReasonFor("Restarting"), std::move(message));
  }

  // Restarts in place vanish with the pods that are about to be replaced, so they go into the
  // count.
  int64_t RestartsLostWithPods() const {
    int64_t sum = 0;
    for (const Census& census : census_) {
      if (job_.RestartsAsGang()) {
        for (const auto& [index, pod] : census.pods) sum += RestartCountOf(*pod);
      } else {
        for (const json::Value* pod : census.failed) sum += RestartCountOf(*pod);
      }
    }
    return sum;
  }

  void ExitEvent(const Replica& replica, const json::Value& pod) {
    const std::optional<int64_t> code = ExitCodeOf(replica, pod);
    if (!code) return;
    JobEvent(EventType::kNormal, "ExitedWithCode",
             fmt::format("Pod: {}.{} exited with code {}", job_.ns, NameOf(pod), *code));
  }

  void RemoveOldPods() {
    for (const json::Value* pod : stale_) DeletePod(*pod);
    for (const json::Value* pod : surplus_) DeletePod(*pod);
    for (const json::Value& service : children_.services) {
      if (!WantedNames().contains(std::string(NameOf(service))))
        Delete(resources::kServices, service);
    }
  }

  const std::set<std::string>& WantedNames() {
    if (wanted_names_.empty()) {
      if (job_.ssh) wanted_names_.insert(job_.name);
      for (const Replica& replica : job_.replicas) {
        for (int64_t i = 0; i < replica.count; ++i) {
          wanted_names_.insert(ReplicaName(job_.name, replica.LowerType(), i));
        }
      }
    }
    return wanted_names_;
  }

  void MakeChildren() {
    for (const std::string& name : children_.taken) {
      JobEvent(
          EventType::kWarning, "FailedCreatePod",
          fmt::format("{} exists already and does not belong to {} {}; delete it or rename the job",
                      name, Kind(), job_.name));
    }
    MakeMissingPodGroup();
    MakeMissingServices();
    KeepAutoscaler();
    if (IsMpi(job_)) KeepMpiObjects();
    if (WaitsForRendezvous()) return;
    // One gang of one epoch at a time: the scheduler must not count yesterday's pods as members.
    const bool wait_for_old = job_.RestartsAsGang() && !(stale_.empty() && surplus_.empty());
    if (wait_for_old) return;
    if (const std::optional<Time> due = NextStart(); due && now_ < *due) {
      return out_.LookAgainAt(*due);
    }
    MakeMissingPods();
  }

  // Later than any delay allows: the clock was set back since the restart, and nobody waits for it.
  std::optional<Time> NextStart() const {
    if (!restarts_.restarted_at) return std::nullopt;
    const Time due = *restarts_.restarted_at + restarts_.Delay();
    return due - now_ > kMaxRestartDelay ? std::nullopt : std::optional(due);
  }

  void MakeMissingPodGroup() {
    if (children_.pod_group.IsNull()) {
      out_.Create({resources::kPodGroups, job_.ns, job_.name, ""}, MakePodGroup(job_));
      return;
    }
    const json::Value wanted = PodGroupSpec(job_);
    json::Value changes;
    for (const json::Member& member : wanted.members()) {
      if (children_.pod_group["spec"][member.first] != member.second)
        changes = changes.Set(member.first, member.second);
    }
    const bool ours = client::ControllerOf(children_.pod_group)["uid"].AsString() == job_.uid;
    if (changes.IsNull() || !ours || IsTerminating(children_.pod_group)) return;
    out_.PatchMerge({resources::kPodGroups, job_.ns, job_.name, ""},
                    json::Obj({{"spec", changes}}));
  }

  // The user's number of workers holds until a metric says otherwise.
  void KeepAutoscaler() {
    if (!job_.elastic || job_.elastic->metrics.IsNull()) return DeleteAutoscaler();
    const Target target{resources::kHorizontalPodAutoscalers, job_.ns, job_.name, ""};
    const json::Value wanted = MakeAutoscaler(job_);
    const json::Value& present = children_.autoscaler;
    if (present.IsNull()) return out_.Create(target, wanted);
    const bool ours = client::ControllerOf(present)["uid"].AsString() == job_.uid;
    if (!ours || IsTerminating(present)) return;
    json::Value changes;
    for (const json::Member& member : wanted["spec"].members()) {
      if (present["spec"][member.first] != member.second)
        changes = changes.Set(member.first, member.second);
    }
    if (!changes.IsNull()) out_.PatchMerge(target, json::Obj({{"spec", changes}}));
  }

  void KeepMpiObjects() {
    std::vector<std::string> running;
    if (const Census* workers = Of(kWorker)) {
      for (const auto& [index, pod] : workers->pods) {
        if (PhaseOf(*pod) == "Running" && !IsTerminating(*pod)) running.emplace_back(NameOf(*pod));
      }
    }
    for (const MpiObject& wanted : MpiObjectsOf(job_, running, children_.ssh_key)) {
      const Target target{wanted.resource, job_.ns, std::string(NameOf(wanted.object)), ""};
      const auto present = children_.mpi_objects.find(wanted.resource.plural);
      if (present == children_.mpi_objects.end()) {
        out_.Create(target, wanted.object);
        continue;
      }
      const json::Value& is = present->second;
      if (wanted.kept.empty() || is[wanted.kept] == wanted.object[wanted.kept]) continue;
      if (client::ControllerOf(is)["uid"].AsString() != job_.uid || IsTerminating(is)) continue;
      out_.PatchMerge(target, json::Obj({{wanted.kept, wanted.object[wanted.kept]}}));
    }
  }

  // True while the first pods wait for the Service of their rendezvous, or for the answer that
  // there will be none. Who trains already is left alone.
  bool WaitsForRendezvous() {
    if (children_.missing_rendezvous.empty() || !children_.pods.empty()) return false;
    const std::optional<Time> start = ParseTime(status_["startTime"].AsString());
    const Time due = start.value_or(now_) + kRendezvousGrace;
    if (now_ < due) {
      out_.LookAgainAt(due);
      return true;
    }
    const json::Value annotations = json::Obj({{std::string(kRendezvousAnnotation), kC10d}});
    out_.PatchMerge(
        JobTarget(),
        json::Obj({{"metadata", json::Obj({{"uid", job_.uid}, {"annotations", annotations}})}}));
    JobEvent(EventType::kWarning, "RendezvousReplaced",
             fmt::format("There is no Service {} for the rendezvous ({}) of elasticPolicy: the "
                         "workers meet by c10d at {} instead, as without rdzvBackend and rdzvHost",
                         children_.missing_rendezvous, job_.elastic->backend,
                         ReplicaName(job_.name, "worker", 0)));
    return true;
  }

  bool IsTaken(std::string_view resource, const std::string& name) const {
    const std::string text = fmt::format("{} \"{}\"", resource, name);
    return std::find(children_.taken.begin(), children_.taken.end(), text) != children_.taken.end();
  }

  // Who is reached by name has a service; MPI's ranks are not.
  void MakeMissingServices() {
    if (IsMpi(job_)) return;
    std::set<std::string_view> existing;
    for (const json::Value& service : children_.services) existing.insert(NameOf(service));
    for (const Replica& replica : job_.replicas) {
      for (int64_t i = 0; i < replica.count; ++i) {
        const std::string name = ReplicaName(job_.name, replica.LowerType(), i);
        if (existing.contains(name) || IsTaken("services", name)) continue;
        out_.Create({resources::kServices, job_.ns, name, ""}, MakeService(job_, replica, i));
        JobEvent(EventType::kNormal, "SuccessfulCreateService",
                 fmt::format("Created service: {}", name));
      }
    }
  }

  void MakeMissingPods() {
    for (const Census& census : census_) {
      bool overwrites = false;
      for (int64_t i = 0; i < census.replica->count; ++i) {
        const std::string name = ReplicaName(job_.name, census.replica->LowerType(), i);
        if (census.pods.contains(i) || IsTaken("pods", name) || IsAwaited(census)) continue;
        out_.Create({resources::kPods, job_.ns, name, ""},
                    MakePod(job_, *census.replica, i, restarts_.epoch));
        JobEvent(EventType::kNormal, "SuccessfulCreatePod", fmt::format("Created pod: {}", name));
        overwrites |= census.replica->pod_template["spec"].Has("restartPolicy");
      }
      if (overwrites) {
        JobEvent(
            EventType::kWarning, "SettedPodTemplateRestartPolicy",
            "Restart policy in pod template will be overwritten by restart policy in replica spec");
      }
    }
  }

  // Running as soon as the role that leads runs, or any worker of a job without one; of an MPIJob
  // all. Whose pods are
  // all gone (with their nodes) begins anew without a restart of its own.
  void ReportProgress() {
    if (Runs()) {
      SetCondition(kRunning, true, ReasonFor("Running"),
                   fmt::format("{} {} is running.", Kind(), job_.name));
    } else if (restarts_.epoch > 0 || restarts_.count > 0 || HasCondition(status_, kRunning)) {
      SetCondition(kRestarting, true, ReasonFor("Restarting"),
                   fmt::format("{} {} is restarting.", Kind(), job_.name));
    }
  }

  bool Runs() const {
    if (IsMpi(job_)) {
      return std::ranges::all_of(census_, [](const Census& census) {
        return census.counts.active == census.replica->count;
      });
    }
    const Replica* leader = job_.Leader();
    const Census* first = leader != nullptr ? Of(leader->type) : Of(kWorker);
    return first != nullptr && first->counts.active > 0;
  }

  const Job& job_;
  const JobChildren& children_;
  const Time now_;
  const Restarts restarts_;
  json::Value status_;
  Reconciled out_;
  std::vector<Census> census_;
  std::vector<const json::Value*> stale_;    // of an earlier epoch, or replaced
  std::vector<const json::Value*> surplus_;  // of an index that the job no longer has
  std::set<std::string> wanted_names_;
};

}  // namespace

const json::Fields& ChildPodFields() {
  static const json::Fields fields{{"metadata", "labels"},
                                   {"metadata", "annotations", kEpochAnnotation},
                                   {"metadata", "annotations", kMembersAnnotation},
                                   {"spec", "nodeName"},
                                   {"status", "phase"},
                                   {"status", "conditions"},
                                   {"status", "containerStatuses", "name"},
                                   {"status", "containerStatuses", "restartCount"},
                                   {"status", "containerStatuses", "state", "terminated"},
                                   {"status", "initContainerStatuses", "restartCount"}};
  return fields;
}

Reconciled ReconcileJob(const Job& job, const JobChildren& children, Time now) {
  return Pass(job, children, now).Run();
}

Reconciled RefuseJob(const schema::TrainingKind& kind, const json::Value& object, const Status& why,
                     Time now) {
  Reconciled out;
  json::Value status = object["status"];
  if (IsFinished(status)) return out;
  const std::string reason = fmt::format("{}Failed", kind.kind);
  out.Event(object, EventType::kWarning, reason, why.message());
  status = WithCondition(status.Set("completionTime", FormatTime(now)),
                         {kFailed, true, reason, why.message()}, now);
  out.UpdateStatus({ResourceOf(kind), object["metadata"]["namespace"].Str(),
                    object["metadata"]["name"].Str(), ""},
                   object.Set("status", status));
  return out;
}

}  // namespace muster::training
