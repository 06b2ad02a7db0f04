#include "controllers/jobset/jobset_controller.h"

#include "cluster/pod_info.h"
#include "controllers/jobset/jobset_facts.h"
#include "controllers/jobset/jobset_pass.h"

namespace muster::controllers {
namespace {

namespace resources = client::resources;

constexpr char kSucceededIndex[] = "succeeded-of-jobset";

bool HasSucceeded(const json::Value& pod) {
  return pod["status"]["phase"].AsString() == "Succeeded";
}

void IndexSucceeded(client::Informer& pods) {
  pods.AddIndex(kSucceededIndex, [](const json::Value& pod) {
    std::vector<std::string> job_sets;
    const json::Value& uid = pod["metadata"]["labels"][kJobSetUidLabel];
    if (!uid.IsNull() && HasSucceeded(pod)) job_sets.push_back(uid.Str());
    return job_sets;
  });
}

// The gang of a pod that had succeeded and is gone.
client::Trigger OnSucceededPods() {
  return {resources::kPods,
          [](const client::ObjectKey& key, const json::Value& before, const json::Value& after) {
            std::vector<client::ObjectKey> keys;
            const json::Value& metadata = before["metadata"];
            const std::string job_set = metadata["labels"][kJobSetNameLabel].Str();
            if (after.IsNull() && HasSucceeded(before) && !job_set.empty() &&
                metadata["annotations"].Has(cluster::kGroupNameAnnotation))
              keys.push_back({key.ns, job_set});
            return keys;
          }};
}

}  // namespace

std::vector<client::Trigger> JobSetController::Setup(client::InformerSet& informers) {
  informers.Get(kJobSetResource, json::Fields::Whole());
  client::IndexByController(informers.Get(resources::kJobs, json::Fields::Whole()));
  informers.Get(resources::kServices, {{"spec", "clusterIP"}, {"spec", "selector"}});
  informers.Get(resources::kPodGroups, {{"spec"}});
  IndexSucceeded(
      informers.Get(resources::kPods, {{"metadata", "labels", kJobSetNameLabel},
                                       {"metadata", "labels", kJobSetUidLabel},
                                       {"metadata", "annotations", cluster::kGroupNameAnnotation},
                                       {"status", "phase"}}));
  return {client::OnSelf(kJobSetResource), OnSucceededPods(),
          client::OnControlledBy(resources::kJobs, "JobSet", "jobset.x-k8s.io"),
          client::OnControlledBy(resources::kServices, "JobSet", "jobset.x-k8s.io"),
          client::OnControlledBy(resources::kPodGroups, "JobSet", "jobset.x-k8s.io")};
}

client::Reconciled JobSetController::Reconcile(const client::View& view,
                                               const client::Observations&,
                                               const client::ObjectKey& key, Time now, uint64_t) {
  client::Reconciled out;
  const json::Value* job_set = view.Of(kJobSetResource).Find(key);
  if (job_set == nullptr || (*job_set)["metadata"].Has("deletionTimestamp") ||
      IsJobSetManagedElsewhere(*job_set))
    return out;
  const client::Informer& jobs = view.Of(resources::kJobs);
  const client::Informer& services = view.Of(resources::kServices);
  JobSetInput input;
  input.job_set = *job_set;
  for (const client::ObjectKey& job :
       client::ControlledBy(jobs, (*job_set)["metadata"]["uid"].AsString())) {
    if (job.ns == key.ns) input.jobs.push_back(*jobs.Find(job));
  }
  input.is_taken = [&](const std::string& name) { return jobs.Find({key.ns, name}) != nullptr; };
  input.find_service = [&](const std::string& name) { return services.Find({key.ns, name}); };
  const std::string uid = (*job_set)["metadata"]["uid"].Str();
  input.succeeded_pods =
      static_cast<int64_t>(view.Of(resources::kPods).Lookup(kSucceededIndex, uid).size());
  const json::Value* pod_group = view.Of(resources::kPodGroups).Find(key);
  if (pod_group != nullptr) input.pod_group = *pod_group;
  ReconcileJobSet(input, now, out);
  return out;
}

}  // namespace muster::controllers
