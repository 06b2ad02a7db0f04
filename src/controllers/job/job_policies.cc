#include "controllers/job/job_policies.h"

#include <algorithm>
#include <string_view>

#include <fmt/core.h>

#include "controllers/job/job_pods.h"

namespace muster::controllers {
namespace {

bool MatchesExitCode(int64_t code, const json::Value& requirement) {
  const json::Array& values = requirement["values"].items();
  const bool is_in = std::any_of(values.begin(), values.end(), [code](const json::Value& value) {
    return value.AsInt() == code;
  });
  const std::string_view op = requirement["operator"].AsString();
  return op == "In" ? is_in : op == "NotIn" && !is_in;
}

// The status of the container whose end the rule means; null if there is none.
json::Value MatchingContainer(const json::Value& pod, const json::Value& requirement) {
  const json::Value& wanted = requirement["containerName"];
  for (const char* list : {"containerStatuses", "initContainerStatuses"}) {
    for (const json::Value& status : pod["status"][list].items()) {
      if (wanted.IsString() && wanted != status["name"]) continue;
      const int64_t code = status.Path({"state", "terminated", "exitCode"}).AsInt();
      if (code != 0 && MatchesExitCode(code, requirement)) return status;
    }
  }
  return {};
}

// The pod's condition that the rule means; null if there is none.
json::Value MatchingCondition(const json::Value& pod, const json::Value& patterns) {
  for (const json::Value& condition : pod["status"]["conditions"].items()) {
    for (const json::Value& pattern : patterns.items()) {
      if (condition["type"] == pattern["type"] &&
          condition["status"].AsString() == pattern["status"].AsString("True"))
        return condition;
    }
  }
  return {};
}

// Why the rule is for the pod, up to the words on the rule; "": it is not.
std::string Match(const json::Value& rule, const json::Value& pod) {
  const std::string name = fmt::format("{}/{}", pod["metadata"]["namespace"].AsString(),
                                       pod["metadata"]["name"].AsString());
  if (rule.Has("onExitCodes")) {
    const json::Value container = MatchingContainer(pod, rule["onExitCodes"]);
    if (container.IsNull()) return "";
    return fmt::format("Container {} for pod {} failed with exit code {}",
                       container["name"].AsString(), name,
                       container.Path({"state", "terminated", "exitCode"}).AsInt());
  }
  const json::Value condition = MatchingCondition(pod, rule["onPodConditions"]);
  if (condition.IsNull()) return "";
  return fmt::format("Pod {} has condition {}", name, condition["type"].AsString());
}

}  // namespace

PodFailureVerdict JudgeFailure(const json::Value& policy, const json::Value& pod) {
  PodFailureVerdict verdict;
  const json::Array& rules = policy["rules"].items();
  for (size_t i = 0; i < rules.size(); ++i) {
    const std::string match = Match(rules[i], pod);
    if (match.empty()) continue;
    const std::string_view action = rules[i]["action"].AsString();
    verdict.counts = action != "Ignore";
    verdict.fails_index = action == "FailIndex";
    if (action == "FailJob")
      verdict.fails_job = fmt::format("{} matching FailJob rule at index {}", match, i);
    break;
  }
  return verdict;
}

std::optional<std::string> MetSuccessRule(const json::Value& policy, int64_t completions,
                                          const IndexSet& succeeded) {
  if (succeeded.empty()) return std::nullopt;
  const json::Array& rules = policy["rules"].items();
  for (size_t i = 0; i < rules.size(); ++i) {
    const std::optional<int64_t> count = rules[i]["succeededCount"].Int();
    bool met = false;
    if (const json::Value& indexes = rules[i]["succeededIndexes"]; indexes.IsString()) {
      const IndexSet wanted = IndexSet::Parse(indexes.AsString(), completions);
      if (wanted.empty()) continue;
      const int64_t there = wanted.CountIn(succeeded);
      met = there == wanted.size() || (count.has_value() && there >= *count);
    } else {
      met = count.has_value() && succeeded.size() >= *count;
    }
    if (met) return fmt::format("Matched rules at index {}", i);
  }
  return std::nullopt;
}

Time BackoffEnds(int64_t failures, Time last_failure, Time now) {
  if (failures <= 0) return Time{};
  Duration wait = kMinPodFailureBackoff;
  for (int64_t i = 1; i < failures && wait < kMaxPodFailureBackoff; ++i) wait *= 2;
  wait = std::min<Duration>(wait, kMaxPodFailureBackoff);
  return last_failure > now + wait ? Time{} : last_failure + wait;
}

Time BackoffEnds(const std::vector<json::Value>& pods, const JobSpec& spec, Time now) {
  Time last_success{};
  for (const json::Value& pod : pods) {
    if (HasSucceeded(pod)) last_success = std::max(last_success, FinishedAt(pod));
  }
  int64_t failures = 0;
  Time last_failure{};
  for (const json::Value& pod : pods) {
    // One that goes without the finalizer was sent away by the Job itself, or is counted.
    const bool sent_away = pod["metadata"].Has("deletionTimestamp") && !IsTracked(pod);
    if (!HasFailed(pod, spec) || sent_away) continue;
    const Time end = FinishedAt(pod);
    if (end <= last_success) continue;
    ++failures;
    last_failure = std::max(last_failure, end);
  }
  return BackoffEnds(failures, last_failure, now);
}

}  // namespace muster::controllers
