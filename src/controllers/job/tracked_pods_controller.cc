#include "controllers/job/tracked_pods_controller.h"

#include "controllers/job/job_pods.h"

namespace muster::controllers {
namespace {

namespace resources = client::resources;

constexpr char kLiveJob[] = "job";

}  // namespace

std::vector<client::Trigger> TrackedPodsController::Setup(client::InformerSet& informers) {
  client::Informer& pods = informers.Get(resources::kPods, JobPodFields());
  client::IndexByController(pods);
  informers.Get(resources::kJobs, json::Fields::Whole());
  return {client::OnSelf(resources::kPods),
          {resources::kJobs,
           [&pods](const client::ObjectKey&, const json::Value& before, const json::Value& after) {
             // A Job that another one of its name follows is gone too.
             const json::Value& uid = before["metadata"]["uid"];
             if (before.IsNull() || uid == after["metadata"]["uid"])
               return std::vector<client::ObjectKey>();
             return client::ControlledBy(pods, uid.AsString());
           }}};
}

client::Reconciled TrackedPodsController::Reconcile(const client::View& view,
                                                    const client::Observations& observations,
                                                    const client::ObjectKey& key, Time, uint64_t) {
  client::Reconciled out;
  const json::Value* pod = view.Of(resources::kPods).Find(key);
  if (pod == nullptr || !IsTracked(*pod)) return out;
  const json::Value& controller = client::ControllerOf(*pod);
  const bool is_of_job =
      controller["kind"].AsString() == "Job" && controller["apiVersion"].AsString() == "batch/v1";
  if (is_of_job) {
    const std::string job_name = controller["name"].Str();
    const json::Value* job = view.Of(resources::kJobs).Find({key.ns, job_name});
    if (job != nullptr && (*job)["metadata"]["uid"] == controller["uid"]) return out;
    const auto live = observations.find(kLiveJob);
    if (live == observations.end()) {
      out.Ask(kLiveJob, {resources::kJobs, key.ns, job_name, ""});
      return out;
    }
    if (live->second["metadata"]["uid"] == controller["uid"]) return out;
  }
  StopTracking(*pod, out);
  return out;
}

}  // namespace muster::controllers
