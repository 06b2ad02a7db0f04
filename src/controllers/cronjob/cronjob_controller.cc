#include "controllers/cronjob/cronjob_controller.h"

#include "controllers/cronjob/cronjob_pass.h"

namespace muster::controllers {
namespace {

namespace resources = client::resources;

}  // namespace

std::vector<client::Trigger> CronJobController::Setup(client::InformerSet& informers) {
  informers.Get(resources::kCronJobs, json::Fields::Whole());
  client::IndexByController(informers.Get(resources::kJobs, json::Fields::Whole()));
  return {client::OnSelf(resources::kCronJobs),
          client::OnControlledBy(resources::kJobs, "CronJob", "batch")};
}

client::Reconciled CronJobController::Reconcile(const client::View& view,
                                                const client::Observations& observations,
                                                const client::ObjectKey& key, Time now, uint64_t) {
  client::Reconciled out;
  const json::Value* cron_job = view.Of(resources::kCronJobs).Find(key);
  if (cron_job == nullptr) return out;
  const client::Informer& jobs = view.Of(resources::kJobs);
  CronJobInput input;
  input.cron_job = *cron_job;
  for (const client::ObjectKey& job :
       client::ControlledBy(jobs, (*cron_job)["metadata"]["uid"].AsString()))
    input.jobs.push_back(*jobs.Find(job));
  input.is_taken = [&](const std::string& name) { return jobs.Find({key.ns, name}) != nullptr; };
  ReconcileCronJob(input, observations, now, out);
  return out;
}

}  // namespace muster::controllers
