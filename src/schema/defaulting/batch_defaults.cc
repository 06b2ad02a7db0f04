// batch/v1: k8s.io/kubernetes pkg/apis/batch/v1/defaults.go. The selector of a Job and the labels
// that go with it are its strategy's: they need the uid.

#include <fmt/core.h>

#include "schema/defaulting/edit.h"
#include "schema/defaulting/kind_defaults.h"

namespace muster::schema {
namespace {

using json::Value;

constexpr int kDefaultBackoffLimit = 6;
constexpr int kDefaultSuccessesKept = 3;
constexpr int kDefaultFailuresKept = 1;

// What a JobSpec gets also inside a CronJob.
Value DefaultJobParts(Value spec) {
  DefaultTemplateOf(spec);
  EditMember(spec, "podFailurePolicy", [](Value policy) {
    EditItems(policy, "rules", [](Value rule) {
      EditItems(rule, "onPodConditions", [](Value pattern) {
        SetDefault(pattern, "status", "True");
        return pattern;
      });
      return rule;
    });
    return policy;
  });
  return spec;
}

}  // namespace

Value DefaultJob(Value job) {
  const Value before = job["spec"];
  Value spec = DefaultJobParts(before);
  if (spec["completions"].IsNull() && spec["parallelism"].IsNull())
    spec = std::move(spec).Set("completions", 1);
  SetIfAbsent(spec, "parallelism", 1);
  const bool per_index = !spec["backoffLimitPerIndex"].IsNull();
  SetIfAbsent(spec, "backoffLimit", per_index ? INT32_MAX : kDefaultBackoffLimit);
  SetIfAbsent(spec, "completionMode", "NonIndexed");
  SetIfAbsent(spec, "suspend", false);
  const bool policy = !spec["podFailurePolicy"].IsNull();
  SetIfAbsent(spec, "podReplacementPolicy", policy ? "Failed" : "TerminatingOrFailed");
  const Value labels = spec["template"]["metadata"]["labels"];
  if (job["metadata"]["labels"].empty() && !labels.empty())
    job = std::move(job).SetPath({"metadata", "labels"}, labels);
  if (!spec.SameAs(before)) job = std::move(job).Set("spec", std::move(spec));
  return job;
}

Value DefaultCronJob(Value cron_job) {
  const Value before = cron_job["spec"];
  Value spec = before;
  SetIfAbsent(spec, "jobTemplate", json::Obj());
  EditMember(spec, "jobTemplate", [](Value job) {
    SetIfAbsent(job, "spec", json::Obj());
    EditMember(job, "spec", DefaultJobParts);
    return job;
  });
  SetDefault(spec, "concurrencyPolicy", "Allow");
  SetIfAbsent(spec, "suspend", false);
  SetIfAbsent(spec, "successfulJobsHistoryLimit", kDefaultSuccessesKept);
  SetIfAbsent(spec, "failedJobsHistoryLimit", kDefaultFailuresKept);
  if (!spec.SameAs(before)) cron_job = std::move(cron_job).Set("spec", std::move(spec));
  return cron_job;
}

// kubernetes-sigs/jobset pkg/webhooks. The Jobs' own defaults come when they are made.
Value DefaultJobSet(Value job_set) {
  const Value before = job_set["spec"];
  Value spec = before;
  SetIfAbsent(spec, "successPolicy", json::Obj({{"operator", "All"}}));
  SetIfAbsent(spec, "startupPolicy", json::Obj({{"startupPolicyOrder", "AnyOrder"}}));
  SetIfAbsent(spec, "network", json::Obj());
  EditMember(spec, "network", [](Value network) {
    SetIfAbsent(network, "enableDNSHostnames", true);
    SetIfAbsent(network, "publishNotReadyAddresses", true);
    return network;
  });
  EditItems(spec, "replicatedJobs", [](Value replicated_job) {
    Value job = replicated_job["template"]["spec"];
    if (!job.IsObject()) return replicated_job;
    SetIfAbsent(job, "completionMode", "Indexed");
    if (IsUnset(job["template"]["spec"]["restartPolicy"]))
      job = job.SetPath({"template", "spec", "restartPolicy"}, "OnFailure");
    if (!job.SameAs(replicated_job["template"]["spec"]))
      replicated_job = replicated_job.SetPath({"template", "spec"}, std::move(job));
    return replicated_job;
  });
  EditMember(spec, "failurePolicy", [](Value policy) {
    int64_t number = 0;
    EditItems(policy, "rules", [&number](Value rule) {
      SetDefault(rule, "name", fmt::format("failurePolicyRule{}", number));
      ++number;
      return rule;
    });
    return policy;
  });
  if (!spec.SameAs(before)) job_set = std::move(job_set).Set("spec", std::move(spec));
  return job_set;
}

}  // namespace muster::schema
