#include "controllers/queues/queued_job_pass.h"

#include <algorithm>

#include <fmt/core.h>

#include "cluster/queues/quota_pool.h"
#include "controllers/finalizers.h"

namespace muster::controllers {
namespace {

using client::EventType;
using client::Reconciled;
using client::Target;

std::string NameOf(const json::Value& object) { return object["metadata"]["name"].Str(); }
std::string UidOf(const json::Value& object) { return object["metadata"]["uid"].Str(); }
bool IsDeleting(const json::Value& object) { return object["metadata"].Has("deletionTimestamp"); }
std::string OwnerUid(const json::Value& workload) {
  return client::ControllerOf(workload)["uid"].Str();
}

// As many pods that need as much: where they may run is not compared, because it is changed when
// the job begins.
bool AsksForTheSame(const json::Value& workload, const json::Value& pod_sets) {
  const std::vector<cluster::PodSet> was = cluster::ToPodSets(workload);
  const std::vector<cluster::PodSet> is =
      cluster::ToPodSets(json::Obj({{"spec", json::Obj({{"podSets", pod_sets}})}}));
  return std::ranges::equal(was, is, [](const cluster::PodSet& a, const cluster::PodSet& b) {
    return a.name == b.name && a.count == b.count && a.requests == b.requests;
  });
}

class QueuedJobPass {
 public:
  QueuedJobPass(const QueuedJobInput& in, Time now) : in_(in), kind_(*in.kind), now_(now) {}

  Reconciled Run() {
    out_.subject = in_.job;
    const bool queued = !in_.job.IsNull() && !IsDeleting(in_.job) && !QueueName().empty();
    for (const json::Value& workload : in_.workloads) {
      if (queued && OwnerUid(workload) == UidOf(in_.job) && own_ == nullptr) {
        own_ = &workload;
      } else {
        Retire(workload);
      }
    }
    if (queued) Manage();
    return std::move(out_);
  }

 private:
  std::string_view QueueName() const { return schema::QueueOf(in_.job); }
  Target JobTarget() const { return {ResourceOf(kind_), in_.key.ns, in_.key.name, ""}; }
  Target WorkloadTarget(const json::Value& workload) const {
    return {kWorkloads, in_.key.ns, NameOf(workload), ""};
  }
  bool IsSuspended() const { return schema::IsSuspended(kind_, in_.job); }
  bool HasPods() const { return in_.has_pods(UidOf(in_.job)); }
  // A pod that was never held is nobody's to hold.
  bool IsHeldPod() const {
    return in_.job["metadata"]["labels"][schema::kManagedLabel].AsString() == "true";
  }

  void Tell(EventType type, const char* reason, std::string message) {
    out_.Event(in_.job, type, reason, std::move(message));
  }

  // Of a job that is gone, or in no queue any more.
  void Retire(const json::Value& workload) {
    if (!IsDeleting(workload)) return Delete(workload);
    if (!in_.has_pods(OwnerUid(workload))) Release(workload);
  }

  void Delete(const json::Value& workload) {
    client::DeleteOptions options;
    options.precondition_uid = UidOf(workload);
    options.propagation_policy = "Background";
    out_.Delete(WorkloadTarget(workload), std::move(options));
  }

  void Release(const json::Value& workload) {
    if (HasFinalizer(workload, kResourceInUse))
      out_.PatchMerge(WorkloadTarget(workload), RemoveFinalizerPatch(workload, kResourceInUse));
  }

  void Manage() {
    if (kind_.IsPod() && !IsHeldPod()) return;
    if (const std::optional<WorkloadEnd> end = EndOf(kind_, in_.job)) return Finish(*end);
    if (own_ == nullptr) return Begin();
    if (IsDeleting(*own_)) return LeaveQueue();
    if (!kind_.IsPod() && !AsksForTheSame(*own_, PodSetsOf(kind_, in_.job))) {
      Tell(EventType::kNormal, "DeletedWorkload",
           fmt::format("Not matching Workload: {}/{}", in_.key.ns, NameOf(*own_)));
      return Delete(*own_);
    }
    const bool active = (*own_)["spec"]["active"].AsBool(true);
    if (Holds(*own_, kAdmitted) && active) {
      if (IsSuspended()) Start();
      return;
    }
    if (!IsSuspended()) return Suspend();
    if (Holds(*own_, kQuotaReserved) && !active && !HasPods()) return GiveBack();
    if (!Holds(*own_, kQuotaReserved)) FollowQueueName();
  }

  void Finish(const WorkloadEnd& end) {
    // Pods that sleep on after their job's end have what they had.
    if (own_ == nullptr || Holds(*own_, kFinished) || HasPods()) return;
    const json::Value status =
        WithCondition((*own_)["status"], kFinished, true, end.reason, end.message,
                      (*own_)["metadata"]["generation"].AsInt(), now_);
    WriteStatus(status);
    Tell(EventType::kNormal, "FinishedWorkload",
         fmt::format("Workload '{}/{}' is declared finished", in_.key.ns, NameOf(*own_)));
  }

  void WriteStatus(const json::Value& status) {
    out_.UpdateStatus(WorkloadTarget(*own_), own_->Set("status", status));
  }

  void Begin() {
    if (!IsSuspended()) {
      if (kind_.IsPod()) return;  // it has its place already
      Suspend();
    }
    if (NeedsWhole()) return;
    const json::Value workload = MakeWorkload(kind_, in_.job, in_.priority);
    out_.Create(WorkloadTarget(workload), workload);
    Tell(EventType::kNormal, "CreatedWorkload",
         fmt::format("Created Workload: {}/{}", in_.key.ns, NameOf(workload)));
  }

  bool NeedsWhole() {
    if (in_.job_is_whole) return false;
    out_.Ask(kWholeObject, JobTarget());
    return true;
  }

  // Somebody deleted the Workload: the job stops, and queues anew when nothing of it is left.
  void LeaveQueue() {
    if (!IsSuspended()) return Suspend();
    if (HasPods() && !kind_.IsPod()) return;
    if (Restore()) Release(*own_);
  }

  void Suspend() {
    Tell(EventType::kNormal, "Suspended", "Kueue managed job suspended");
    if (kind_.IsPod()) {
      client::DeleteOptions options;
      options.precondition_uid = UidOf(in_.job);
      out_.Delete(JobTarget(), std::move(options));
      return;
    }
    const json::Value spec = schema::WithSuspended(kind_, json::Obj({}), true);
    out_.PatchMerge(JobTarget(), spec.SetPath({"metadata", "uid"}, in_.job["metadata"]["uid"]));
  }

  // To where its pods might run before it was given a flavor. False: it takes another pass.
  bool Restore() {
    if (kind_.IsPod()) return true;
    const json::Value restored = WithPlacement(kind_, in_.job, (*own_)["spec"]["podSets"]);
    if (restored == in_.job) return true;
    if (ForgetsStart()) return false;
    out_.Update(JobTarget(), restored);
    return true;
  }

  // Where the pods of a Job may run can be changed if it is suspended and never began, or says so.
  bool ForgetsStart() {
    if (kind_.kind != "Job" || !in_.job["status"].Has("startTime")) return false;
    out_.UpdateStatus(JobTarget(), in_.job.RemovePath({"status", "startTime"}));
    return true;
  }

  void Start() {
    if (NeedsWhole()) return;
    const json::Value placed = WithPlacement(kind_, in_.job, PlacedPodSets());
    if (!(placed == in_.job) && ForgetsStart()) return;
    out_.Update(JobTarget(), schema::WithSuspended(kind_, placed, false));
    Tell(EventType::kNormal, "Started",
         fmt::format("Admitted by clusterQueue {}",
                     (*own_)["status"]["admission"]["clusterQueue"].AsString()));
  }

  // The Workload's sets of pods with the labels and tolerations of their flavors.
  json::Value PlacedPodSets() const {
    json::Array sets;
    for (const json::Value& set : (*own_)["spec"]["podSets"].items()) {
      json::Value spec = set["template"]["spec"];
      for (const json::Value& given : (*own_)["status"]["admission"]["podSetAssignments"].items()) {
        if (given["name"] == set["name"]) spec = WithFlavors(spec, given["flavors"]);
      }
      sets.push_back(set.SetPath({"template", "spec"}, spec));
    }
    return json::Value(std::move(sets));
  }

  json::Value WithFlavors(json::Value spec, const json::Value& flavors) const {
    for (const auto& [resource, name] : flavors.members()) {
      const json::Value* flavor = in_.find_flavor(name.Str());
      if (flavor == nullptr) continue;
      for (const auto& [label, value] : (*flavor)["spec"]["nodeLabels"].members())
        spec = spec.SetPath({"nodeSelector", label}, value);
      json::Value tolerations = spec["tolerations"];
      for (const json::Value& toleration : (*flavor)["spec"]["tolerations"].items()) {
        const json::Array& known = tolerations.items();
        if (std::ranges::find(known, toleration) == known.end())
          tolerations = tolerations.Append(toleration);
      }
      if (!tolerations.empty()) spec = spec.Set("tolerations", tolerations);
    }
    return spec;
  }

  // It is told to stand aside (spec.active is false), and nothing of it runs any more.
  void GiveBack() {
    const int64_t generation = (*own_)["metadata"]["generation"].AsInt();
    const char* message = "The workload is deactivated";
    json::Value status = (*own_)["status"].Remove("admission");
    status = WithCondition(status, kQuotaReserved, false, "Pending", message, generation, now_);
    status = WithCondition(status, kAdmitted, false, "NoReservation",
                           "The workload has no reservation", generation, now_);
    status = WithCondition(status, kEvicted, true, "Deactivated", message, generation, now_);
    if (Restore()) WriteStatus(status);
  }

  void FollowQueueName() {
    if ((*own_)["spec"]["queueName"].AsString() == QueueName()) return;
    out_.PatchMerge(WorkloadTarget(*own_),
                    json::Obj({{"metadata", json::Obj({{"uid", (*own_)["metadata"]["uid"]}})},
                               {"spec", json::Obj({{"queueName", QueueName()}})}}));
  }

  const QueuedJobInput& in_;
  const schema::QueuedKind& kind_;
  const Time now_;
  const json::Value* own_ = nullptr;
  Reconciled out_;
};

}  // namespace

Reconciled ReconcileQueuedJob(const QueuedJobInput& input, Time now) {
  return QueuedJobPass(input, now).Run();
}

}  // namespace muster::controllers
