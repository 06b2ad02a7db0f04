#include "controllers/jobset/jobset_policies.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/time.h"
#include "controllers/jobset/jobset_facts.h"
#include "schema/conditions.h"

namespace muster::controllers {
namespace {

std::string_view ReplicatedJobOf(const json::Value& job) {
  return job["metadata"]["labels"][kReplicatedJobNameLabel].AsString();
}

// An empty list has everything.
bool Covers(const json::Value& names, std::string_view name) {
  const auto& items = names.items();
  return items.empty() || std::ranges::any_of(items, [&](const json::Value& item) {
           return item.AsString() == name;
         });
}

bool Fits(const json::Value& rule, const json::Value& job) {
  const json::Value& failure = schema::FindCondition(job["status"]["conditions"], "Failed");
  return Covers(rule["onJobFailureReasons"], failure["reason"].AsString()) &&
         !ReplicatedJobOf(job).empty() &&
         Covers(rule["targetReplicatedJobs"], ReplicatedJobOf(job));
}

Time FailedAt(const json::Value& job) {
  const json::Value& failure = schema::FindCondition(job["status"]["conditions"], "Failed");
  return ParseTime(failure["lastTransitionTime"].AsString()).value_or(Time::max());
}

// Null if none fits; a null rule fits all.
const json::Value* FirstFailed(const json::Value& rule, const std::vector<json::Value>& failed) {
  const json::Value* first = nullptr;
  for (const json::Value& job : failed) {
    if (!rule.IsNull() && !Fits(rule, job)) continue;
    if (first == nullptr || FailedAt(job) < FailedAt(*first)) first = &job;
  }
  return first;
}

FailureAction ActionOf(const json::Value& rule) {
  const std::string_view action = rule["action"].AsString();
  if (action == "FailJobSet") return FailureAction::kFail;
  if (action == "RestartJobSetAndIgnoreMaxRestarts") return FailureAction::kRestartUncounted;
  return FailureAction::kRestart;
}

}  // namespace

FailureVerdict JudgeFailedJobs(const json::Value& failure_policy,
                               const std::vector<json::Value>& failed) {
  for (const json::Value& rule : failure_policy["rules"].items()) {
    if (const json::Value* job = FirstFailed(rule, failed))
      return {ActionOf(rule), (*job)["metadata"]["name"].Str()};
  }
  return {failure_policy.IsNull() ? FailureAction::kFailWithoutPolicy : FailureAction::kRestart,
          (*FirstFailed({}, failed))["metadata"]["name"].Str()};
}

bool HasSucceededBy(const json::Value& spec, const std::vector<json::Value>& succeeded) {
  const json::Value& policy = spec["successPolicy"];
  const json::Value& targets = policy["targetReplicatedJobs"];
  int64_t expected = 0;
  for (const json::Value& item : spec["replicatedJobs"].items()) {
    if (Covers(targets, item["name"].AsString())) expected += item["replicas"].AsInt(1);
  }
  if (policy["operator"].AsString() == "Any") expected = 1;
  return std::ranges::count_if(succeeded, [&](const json::Value& job) {
           return Covers(targets, ReplicatedJobOf(job));
         }) >= expected;
}

}  // namespace muster::controllers
