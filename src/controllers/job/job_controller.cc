#include "controllers/job/job_controller.h"

#include <optional>
#include <utility>

#include "controllers/job/job_facts.h"
#include "controllers/job/job_pass.h"
#include "controllers/job/job_pods.h"
#include "controllers/pods/ownership.h"
#include "controllers/pods/pod_facts.h"
#include "controllers/pods/selected_objects.h"

namespace muster::controllers {
namespace {

namespace resources = client::resources;

// A pod whose creation was answered late, after the Job's end, is of no use.
void EndLatePods(const client::Informer& pods, const json::Value& job, client::Reconciled& out) {
  for (const client::ObjectKey& key :
       client::ControlledBy(pods, job["metadata"]["uid"].AsString())) {
    const json::Value& pod = *pods.Find(key);
    if (IsTracked(pod)) StopTracking(pod, out);
    if (!IsActive(pod)) continue;
    client::DeleteOptions options;
    options.precondition_uid = pod["metadata"]["uid"].Str();
    out.Delete({resources::kPods, key.ns, key.name, ""}, std::move(options));
  }
}

void DeleteExpired(const json::Value& job, Time now, client::Reconciled& out) {
  const std::optional<Time> at = ExpiresAt(job);
  const json::Value& metadata = job["metadata"];
  if (!at.has_value() || metadata.Has("deletionTimestamp")) return;
  if (*at > now) return out.LookAgainAt(*at);
  client::DeleteOptions options;
  options.propagation_policy = "Foreground";
  options.precondition_uid = metadata["uid"].Str();
  // Its time to live may have become longer.
  options.precondition_resource_version = metadata["resourceVersion"].Str();
  const client::ObjectKey key = client::KeyOf(job);
  out.Delete({resources::kJobs, key.ns, key.name, ""}, std::move(options));
}

}  // namespace

std::vector<client::Trigger> JobController::Setup(client::InformerSet& informers) {
  client::Informer& jobs = informers.Get(resources::kJobs, json::Fields::Whole());
  IndexBySelector(jobs, SelectorOfSpec);
  client::Informer& pods = informers.Get(resources::kPods, JobPodFields());
  client::IndexByController(pods);
  IndexByLabels(pods);
  return {client::OnSelf(resources::kJobs),
          client::OnControlledBy(resources::kPods, "Job", "batch"),
          OnOrphan(resources::kPods, jobs)};
}

client::Reconciled JobController::Reconcile(const client::View& view,
                                            const client::Observations& observations,
                                            const client::ObjectKey& key, Time now, uint64_t seed) {
  client::Reconciled out;
  const json::Value* job = view.Of(resources::kJobs).Find(key);
  if (job == nullptr) return out;
  const client::Informer& pods = view.Of(resources::kPods);
  if (IsFinished(*job)) {
    if (!IsManagedElsewhere(*job)) EndLatePods(pods, *job, out);
    DeleteExpired(*job, now, out);
    return out;
  }
  if (IsManagedElsewhere(*job)) return out;
  const schema::LabelSelector selector = SelectorOfSpec(*job);
  Claims claims = Claim(*job, selector, Candidates(pods, *job, selector));
  if (CarryOut(resources::kJobs, *job, resources::kPods, observations, claims, out,
               kTrackingFinalizer))
    return out;
  JobInput input;
  input.job = *job;
  input.pods = std::move(claims.owned);
  input.is_taken = [&](const std::string& name) { return pods.Find({key.ns, name}) != nullptr; };
  input.seed = seed;
  ReconcileJob(input, now, out);
  return out;
}

}  // namespace muster::controllers
