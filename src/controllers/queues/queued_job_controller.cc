#include "controllers/queues/queued_job_controller.h"

#include "base/strings.h"
#include "controllers/jobset/jobset_facts.h"
#include "controllers/queues/queued_job_pass.h"
#include "controllers/queues/workload_objects.h"
#include "schema/pod_phase.h"

namespace muster::controllers {
namespace {

namespace resources = client::resources;

constexpr char kByOwner[] = "workload-of-job";  // "Job/ns/name": jobs that are gone, too
constexpr char kPodsOfJobSet[] = "pods-of-jobset";

std::string OwnerKey(std::string_view kind, const client::ObjectKey& key) {
  return fmt::format("{}/{}/{}", kind, key.ns, key.name);
}

bool IsLeft(const json::Value& pod) {
  return !pod.IsNull() && !schema::IsFinalPhase(pod["status"]["phase"].AsString());
}

bool IsQueuedPod(const json::Value& pod) {
  return pod["metadata"]["labels"].Has(schema::kManagedLabel) ||
         pod["metadata"]["labels"].Has(schema::kQueueNameLabel);
}

// Whose pod has just ended, or is gone: perhaps that was the last.
client::Trigger OnLastPods(const schema::QueuedKind& kind) {
  return {resources::kPods, [&kind](const client::ObjectKey& key, const json::Value& before,
                                    const json::Value& after) {
            std::vector<client::ObjectKey> keys;
            const json::Value& pod = after.IsNull() ? before : after;
            if (kind.IsPod()) {
              if (IsQueuedPod(pod)) keys.push_back(key);
              return keys;
            }
            if (!IsLeft(before) || IsLeft(after)) return keys;
            const json::Value& owner = client::ControllerOf(pod);
            if (kind.kind == "JobSet") {
              const std::string job_set = pod["metadata"]["labels"][kJobSetNameLabel].Str();
              if (!job_set.empty()) keys.push_back({key.ns, job_set});
            } else if (owner["kind"].AsString() == kind.kind) {
              keys.push_back({key.ns, owner["name"].Str()});
            }
            return keys;
          }};
}

// A job in no queue wakes nobody.
client::Trigger OnQueuedJobs(const schema::QueuedKind& kind) {
  return {ResourceOf(kind),
          [](const client::ObjectKey& key, const json::Value& before, const json::Value& after) {
            std::vector<client::ObjectKey> keys;
            if (!schema::QueueOf(before).empty() || !schema::QueueOf(after).empty())
              keys.push_back(key);
            return keys;
          }};
}

void IndexPodsOfJobSets(client::Informer& pods) {
  pods.AddIndex(kPodsOfJobSet, [](const json::Value& pod) {
    std::vector<std::string> job_sets;
    const json::Value& uid = pod["metadata"]["labels"][kJobSetUidLabel];
    if (!uid.IsNull() && IsLeft(pod)) job_sets.push_back(uid.Str());
    return job_sets;
  });
}

// The class that the workload names, that of its pods, or the cluster's default.
WorkloadPriority PriorityOf(const client::View& view, const schema::QueuedKind& kind,
                            const json::Value& job) {
  const std::string named = job["metadata"]["labels"][schema::kQueuePriorityLabel].Str();
  if (!named.empty()) {
    const json::Value* found = view.Of(kWorkloadPriorityClasses).Find({"", named});
    const int64_t value = found == nullptr ? 0 : (*found)["value"].AsInt();
    return {value, named, "kueue.x-k8s.io/workloadpriorityclass"};
  }
  const client::Informer& classes = view.Of(resources::kPriorityClasses);
  const json::Value pod_sets = PodSetsOf(kind, job);
  for (const json::Value& set : pod_sets.items()) {
    const std::string name = set["template"]["spec"]["priorityClassName"].Str();
    if (name.empty()) continue;
    const json::Value* found = classes.Find({"", name});
    return {found == nullptr ? 0 : (*found)["value"].AsInt(), name,
            "scheduling.k8s.io/priorityclass"};
  }
  for (const auto& [key, each] : classes.objects()) {
    if (each["globalDefault"].AsBool())
      return {each["value"].AsInt(), key.name, "scheduling.k8s.io/priorityclass"};
  }
  return {};
}

}  // namespace

QueuedJobController::QueuedJobController(const schema::QueuedKind& kind)
    : kind_(kind),
      resource_(ResourceOf(kind)),
      name_(fmt::format("queued-{}-controller", ToLower(kind.kind))) {}

std::vector<client::Trigger> QueuedJobController::Setup(client::InformerSet& informers) {
  client::Informer& workloads = informers.Get(kWorkloads, json::Fields::Whole());
  const std::string kind(kind_.kind);
  workloads.AddIndex(std::string(kByOwner) + kind, [kind](const json::Value& workload) {
    std::vector<std::string> owners;
    const json::Value& owner = client::ControllerOf(workload);
    if (owner["kind"].AsString() == kind) {
      owners.push_back(
          OwnerKey(kind, {workload["metadata"]["namespace"].Str(), owner["name"].Str()}));
    }
    return owners;
  });
  client::Informer& pods =
      informers.Get(resources::kPods, {{"metadata", "labels", schema::kQueueNameLabel},
                                       {"metadata", "labels", schema::kManagedLabel},
                                       {"metadata", "labels", kJobSetUidLabel},
                                       {"metadata", "labels", kJobSetNameLabel},
                                       {"spec", "schedulingGates"},
                                       {"status", "phase"}});
  client::IndexByController(pods);
  if (kind_.kind == "JobSet") IndexPodsOfJobSets(pods);
  if (!kind_.IsPod()) informers.Get(resource_, json::Fields::Whole());
  FollowDefinitions(informers);
  informers.Get(kResourceFlavors, json::Fields::Whole());
  informers.Get(kWorkloadPriorityClasses, {{"value"}});
  informers.Get(resources::kPriorityClasses, {{"value"}, {"globalDefault"}});
  std::vector<client::Trigger> triggers = {
      OnLastPods(kind_), client::OnControlledBy(kWorkloads, kind, std::string(kind_.group))};
  if (!kind_.IsPod()) triggers.push_back(OnQueuedJobs(kind_));
  return triggers;
}

bool QueuedJobController::HasPods(const client::View& view, const client::ObjectKey& key,
                                  const std::string& uid) const {
  const client::Informer& pods = view.Of(resources::kPods);
  if (kind_.IsPod()) {
    const json::Value* pod = pods.Find(key);
    return pod != nullptr && (*pod)["metadata"]["uid"].AsString() == uid && IsLeft(*pod);
  }
  if (kind_.kind == "JobSet") return pods.LookupCount(kPodsOfJobSet, uid) > 0;
  for (const client::ObjectKey& pod : client::ControlledBy(pods, uid)) {
    if (IsLeft(*pods.Find(pod))) return true;
  }
  return false;
}

client::Reconciled QueuedJobController::Reconcile(const client::View& view,
                                                  const client::Observations& observations,
                                                  const client::ObjectKey& key, Time now,
                                                  uint64_t) {
  QueuedJobInput input;
  input.kind = &kind_;
  input.key = key;
  if (const json::Value* job = view.Of(resource_).Find(key)) input.job = *job;
  input.job_is_whole = !kind_.IsPod();
  if (const auto whole = observations.find(kWholeObject);
      whole != observations.end() && !input.job.IsNull() &&
      whole->second["metadata"]["uid"] == input.job["metadata"]["uid"]) {
    input.job = whole->second;
    input.job_is_whole = true;
  }
  const client::Informer& workloads = view.Of(kWorkloads);
  for (const client::ObjectKey& workload :
       workloads.Lookup(kByOwner + std::string(kind_.kind), OwnerKey(kind_.kind, key)))
    input.workloads.push_back(*workloads.Find(workload));
  if (input.workloads.empty() && schema::QueueOf(input.job).empty()) return {};
  if (AreManagedElsewhere(view)) return {};
  input.has_pods = [&](const std::string& uid) { return HasPods(view, key, uid); };
  input.find_flavor = [&](const std::string& name) {
    return view.Of(kResourceFlavors).Find({"", name});
  };
  if (input.workloads.empty()) input.priority = PriorityOf(view, kind_, input.job);
  return ReconcileQueuedJob(input, now);
}

}  // namespace muster::controllers
