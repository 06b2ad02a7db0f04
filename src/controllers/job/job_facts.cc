#include "controllers/job/job_facts.h"

#include <algorithm>
#include <limits>

#include "base/bounded_seconds.h"
#include "schema/conditions.h"

namespace muster::controllers {
namespace {

constexpr std::string_view kOurName = "kubernetes.io/job-controller";

}  // namespace

JobSpec::JobSpec(const json::Value& job) {
  const json::Value& spec = job["spec"];
  parallelism = spec["parallelism"].AsInt(1);
  completions = spec["completions"].Int();
  backoff_limit = spec["backoffLimit"].AsInt(6);
  backoff_limit_per_index = spec["backoffLimitPerIndex"].Int();
  max_failed_indexes = spec["maxFailedIndexes"].Int();
  if (const std::optional<int64_t> deadline = spec["activeDeadlineSeconds"].Int())
    active_deadline = BoundedSeconds(*deadline);
  indexed = spec["completionMode"].AsString() == "Indexed" && completions.has_value();
  suspended = spec["suspend"].AsBool();
  failure_policy = spec["podFailurePolicy"];
  success_policy = spec["successPolicy"];
  replaces_only_failed =
      spec["podReplacementPolicy"].AsString() == "Failed" || !failure_policy.IsNull();
}

const json::Value& FinishedCondition(const json::Value& job) {
  static const json::Value kNone;
  for (const char* type : {"Complete", "Failed"}) {
    const json::Value& condition = schema::FindCondition(job["status"]["conditions"], type);
    if (condition["status"].AsString() == "True") return condition;
  }
  return kNone;
}

bool IsManagedElsewhere(const json::Value& job) {
  return job["spec"]["managedBy"].AsString(kOurName) != kOurName;
}

std::optional<Time> ExpiresAt(const json::Value& job) {
  const std::optional<int64_t> ttl = job["spec"]["ttlSecondsAfterFinished"].Int();
  if (!ttl.has_value()) return std::nullopt;
  const std::optional<Time> since =
      ParseTime(FinishedCondition(job)["lastTransitionTime"].AsString());
  if (!since.has_value()) return std::nullopt;
  return *since + BoundedSeconds(*ttl);
}

}  // namespace muster::controllers
