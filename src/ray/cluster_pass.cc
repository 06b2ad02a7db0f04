#include "ray/cluster_pass.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/strings.h"
#include "controllers/pods/pod_facts.h"
#include "controllers/pods/pod_template.h"
#include "ray/autoscaler.h"
#include "ray/cluster_status.h"
#include "ray/pods.h"
#include "schema/pod_phase.h"

namespace muster::ray {
namespace {

using client::EventType;
using client::Reconciled;
namespace core = client::resources;

bool IsTerminating(const json::Value& object) {
  return object["metadata"].Has("deletionTimestamp");
}
std::string NameOf(const json::Value& object) { return object["metadata"]["name"].Str(); }

// Nothing of Ray runs in it any more: over, or its first container, which `pod_template` names, has
// ended for good beside one that goes on.
bool HasEnded(const json::Value& pod, const json::Value& pod_template, bool restarts) {
  if (schema::IsFinalPhase(pod["status"]["phase"].AsString())) return true;
  if (restarts) return false;
  const std::string_view ray = pod_template["spec"]["containers"].At(0)["name"].AsString();
  for (const json::Value& container : pod["status"]["containerStatuses"].items()) {
    if (container["name"].AsString() == ray) return container["state"].Has("terminated");
  }
  return false;
}

class Pass {
 public:
  Pass(const Cluster& cluster, const ClusterChildren& children, Time now, uint64_t seed)
      : cluster_(cluster), children_(children), now_(now), seed_(seed) {}

  Reconciled Run() {
    out_.subject = cluster_.object;
    for (const json::Value& pod : children_.pods) names_.insert(NameOf(pod));
    for (const WorkerGroup& group : cluster_.groups)
      names_.insert(group.workers_to_delete.begin(), group.workers_to_delete.end());
    ReportStatus();
    if (cluster_.suspend) {
      Suspend();
    } else {
      Proceed();
    }
    return std::move(out_);
  }

 private:
  client::Target TargetOf(const client::Resource& resource, std::string name) const {
    return {resource, cluster_.ns, std::move(name), ""};
  }

  bool IsOurs(const json::Value& object) const {
    return client::ControllerOf(object)["uid"].AsString() == cluster_.uid;
  }

  void Event(EventType type, std::string reason, std::string message) {
    out_.Event(cluster_.object, type, std::move(reason), std::move(message));
  }

  // First of all writes: a pass whose other writes fail has at least said where it stands.
  void ReportStatus() {
    const json::Value status =
        ClusterStatus(cluster_, children_.pods, children_.head_service, children_.refused, now_);
    if (status == cluster_.object["status"]) return;
    out_.UpdateStatus(TargetOf(resources::kRayClusters, cluster_.name),
                      cluster_.object.Set("status", status));
  }

  void Delete(const client::Resource& resource, const json::Value& object) {
    if (object.IsNull() || IsTerminating(object) || !IsOurs(object)) return;
    client::DeleteOptions options;
    options.precondition_uid = object["metadata"]["uid"].Str();
    options.propagation_policy = "Background";
    out_.Delete(TargetOf(resource, NameOf(object)), std::move(options));
  }

  void DeletePod(const json::Value& pod, std::string_view why) {
    if (IsTerminating(pod)) return;
    Delete(core::kPods, pod);
    const std::string_view type = IsHead(pod) ? "Head" : "Worker";
    Event(EventType::kNormal, fmt::format("Deleted{}Pod", type),
          fmt::format("Deleted {} Pod {}/{}; {}", ToLower(type), cluster_.ns, NameOf(pod), why));
  }

  void Suspend() {
    for (const json::Value& pod : children_.pods) DeletePod(pod, "the cluster is suspended");
    Delete(core::kServices, children_.head_service);
    Delete(core::kPodGroups, children_.pod_group);
  }

  void Proceed() {
    KeepPodGroup();
    KeepHeadService();
    KeepAccount();
    if (cluster_.recreates) RemoveOutdated();
    KeepHead();
    for (const WorkerGroup& group : cluster_.groups) KeepWorkers(group);
    for (const json::Value& pod : children_.pods) {
      if (!IsHead(pod) && cluster_.Find(GroupOf(pod)) == nullptr)
        DeletePod(pod, "its group is no more");
    }
  }

  void KeepPodGroup() {
    const client::Target target = TargetOf(core::kPodGroups, cluster_.PodGroupName());
    if (children_.pod_group.IsNull()) return out_.Create(target, MakePodGroup(cluster_));
    const json::Value wanted = PodGroupSpec(cluster_);
    json::Value changes;
    for (const auto& [name, value] : wanted.members()) {
      if (children_.pod_group["spec"][name] != value) changes = changes.Set(name, value);
    }
    if (changes.IsNull() || !IsOurs(children_.pod_group) || IsTerminating(children_.pod_group))
      return;
    out_.PatchMerge(target, json::Obj({{"spec", changes}}));
  }

  void KeepHeadService() {
    if (!children_.head_service.IsNull()) return;
    out_.Create(TargetOf(core::kServices, cluster_.HeadServiceName()), MakeHeadService(cluster_));
    Event(EventType::kNormal, "CreatedService",
          fmt::format("Created service {}/{}", cluster_.ns, cluster_.HeadServiceName()));
  }

  void KeepAccount() {
    if (!cluster_.autoscaling) return;
    for (const AccountObject& wanted : AutoscalerAccount(cluster_)) {
      if (children_.account.contains(wanted.resource.plural)) continue;
      out_.Create(TargetOf(wanted.resource, NameOf(wanted.object)), wanted.object);
    }
  }

  // upgradeStrategy Recreate: head and workers go together, because a new head knows no old worker.
  void RemoveOutdated() {
    const auto is_outdated = [this](const json::Value& pod) {
      const WorkerGroup* group = cluster_.Find(GroupOf(pod));
      const json::Value& hash = pod["metadata"]["annotations"][kTemplateHashAnnotation];
      if (IsHead(pod)) return hash.AsString() != HeadHash(cluster_);
      return group != nullptr && hash.AsString() != WorkerHash(cluster_, *group);
    };
    if (std::none_of(children_.pods.begin(), children_.pods.end(), is_outdated)) return;
    for (const json::Value& pod : children_.pods) {
      DeletePod(pod, "its template has changed");
      removed_.insert(NameOf(pod));
    }
  }

  bool Counts(const json::Value& pod) const {
    return controllers::IsActive(pod) && !removed_.contains(NameOf(pod));
  }

  void KeepHead() {
    std::vector<json::Value> heads;
    for (const json::Value& pod : children_.pods) {
      if (IsHead(pod)) heads.push_back(pod);
    }
    if (heads.empty()) return MakeHead();
    bool kept = false;
    for (const json::Value& head : heads) {
      if (Ended(head, cluster_.head["template"])) {
        DeletePod(head, "it had ended");
      } else if (std::exchange(kept, true)) {
        DeletePod(head, "there is another head");
      }
    }
  }

  bool Ended(const json::Value& pod, const json::Value& pod_template) const {
    const bool restarts = !IsAutoscalerV2(cluster_) &&
                          pod_template["spec"]["restartPolicy"].AsString("Always") != "Never";
    return HasEnded(pod, pod_template, restarts);
  }

  void MakeHead() {
    const std::string name = NextName(HeadPodBase(cluster_));
    MakePod(MakeHeadPod(cluster_, name), "Head");
  }

  void KeepWorkers(const WorkerGroup& group) {
    std::vector<json::Value> active, every;
    const std::set<std::string> doomed(group.workers_to_delete.begin(),
                                       group.workers_to_delete.end());
    for (const json::Value& pod : children_.pods) {
      if (IsHead(pod)) continue;
      every.push_back(pod);
      if (GroupOf(pod) != group.name) continue;
      if (doomed.contains(NameOf(pod))) {
        DeletePod(pod, "it is in workersToDelete");
      } else if (Ended(pod, group.pod_template)) {
        DeletePod(pod, "it had ended");
      } else if (Counts(pod)) {
        active.push_back(pod);
      }
    }
    const int64_t missing = group.Desired() - static_cast<int64_t>(active.size());
    for (int64_t i = 0; i < missing && made_ < kMaxNewPodsPerPass; ++i) {
      const std::string name = NextName(WorkerPodBase(cluster_, group));
      MakePod(MakeWorkerPod(cluster_, group, name), "Worker");
    }
    if (missing >= 0 || (cluster_.autoscaling && !group.suspend)) return;
    controllers::SortForDeletion(active, every, now_);
    for (int64_t i = 0; i < -missing; ++i)
      DeletePod(active[static_cast<size_t>(i)], "there are more than its group's replicas");
  }

  std::string NextName(const std::string& base) {
    controllers::PodNames names(base, Hash64(base, seed_));
    std::string name =
        names.Next([this](const std::string& candidate) { return names_.contains(candidate); });
    names_.insert(name);
    return name;
  }

  void MakePod(json::Value pod, std::string_view type) {
    const std::string name = NameOf(pod);
    out_.Create(TargetOf(core::kPods, name), std::move(pod));
    Event(EventType::kNormal, fmt::format("Created{}Pod", type),
          fmt::format("Created {} Pod {}/{}", ToLower(type), cluster_.ns, name));
    ++made_;
  }

  const Cluster& cluster_;
  const ClusterChildren& children_;
  const Time now_;
  const uint64_t seed_;
  Reconciled out_;
  std::set<std::string> names_;    // not to be given again
  std::set<std::string> removed_;  // by this pass
  size_t made_ = 0;
};

}  // namespace

const json::Fields& ClusterPodFields() {
  static const json::Fields fields = [] {
    json::Fields all{{"metadata", "labels"},
                     {"metadata", "annotations", kTemplateHashAnnotation},
                     {"status", "phase"},
                     {"status", "podIP"},
                     {"status", "containerStatuses", "name"},
                     {"status", "containerStatuses", "state", "terminated"}};
    return all.Add(controllers::PodFactFields());
  }();
  return fields;
}

Reconciled ReconcileCluster(const Cluster& cluster, const ClusterChildren& children, Time now,
                            uint64_t seed) {
  return Pass(cluster, children, now, seed).Run();
}

}  // namespace muster::ray
