#include "ray/job_controller.h"

#include "ray/cluster.h"
#include "ray/job_pass.h"

namespace muster::ray {

namespace core = client::resources;

std::vector<client::Trigger> JobController::Setup(client::InformerSet& informers) {
  informers.Get(resources::kRayJobs, json::Fields::Whole());
  informers.Get(resources::kRayClusters, json::Fields::Whole());
  informers.Get(core::kJobs, {{"status", "conditions"}});
  return {client::OnSelf(resources::kRayJobs),
          client::OnControlledBy(resources::kRayClusters, "RayJob", std::string(kGroup)),
          client::OnControlledBy(core::kJobs, "RayJob", std::string(kGroup))};
}

client::Reconciled JobController::Reconcile(const client::View& view,
                                            const client::Observations& observations,
                                            const client::ObjectKey& key, Time now, uint64_t seed) {
  const json::Value* job = view.Of(resources::kRayJobs).Find(key);
  if (job == nullptr || (*job)["metadata"].Has("deletionTimestamp") || IsManagedElsewhere(*job))
    return {};
  JobChildren children;
  const std::string cluster_name = (*job)["status"]["rayClusterName"].Str();
  const json::Value* cluster = view.Of(resources::kRayClusters).Find({key.ns, cluster_name});
  if (cluster != nullptr) children.cluster = *cluster;
  const json::Value* submitter = view.Of(core::kJobs).Find(key);
  if (submitter != nullptr) children.submitter = *submitter;
  return ReconcileJob(*job, children, observations, now, seed);
}

}  // namespace muster::ray
