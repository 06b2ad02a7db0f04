// What a Job's status may become: k8s.io/kubernetes pkg/apis/batch/validation and
// pkg/registry/batch/job. A rule about a field holds only for writes that change what it is about:
// a status that broke it before may still be mended elsewhere.

#include <algorithm>
#include <optional>
#include <set>

#include "base/time.h"
#include "schema/conditions.h"
#include "schema/index_intervals.h"
#include "schema/validation/kind_validation.h"
#include "schema/validation/workload_parts.h"

namespace muster::schema {
namespace {

using json::Value;

bool Is(const Value& status, std::string_view condition) {
  return ConditionHolds(status["conditions"], condition);
}

bool IsFinished(const Value& status) { return Is(status, "Complete") || Is(status, "Failed"); }

// Both states of a Job while its status is written.
struct StatusChange {
  const Value& spec;
  const Value& old;
  const Value& now;

  bool Of(std::string_view key) const { return !(old[key] == now[key]); }
  bool OfCondition(std::string_view type) const { return Is(old, type) != Is(now, type); }
  bool OfFinished() const { return IsFinished(old) != IsFinished(now); }
};

void ValidateUncounted(const Value& uncounted, const Path& path, FieldErrors& errors) {
  std::set<std::string> seen;
  for (const char* key : {"succeeded", "failed"}) {
    const Path list = path.Child(key);
    for (size_t i = 0; i < uncounted[key].size(); ++i) {
      const Value& uid = uncounted[key].At(i);
      if (uid.AsString().empty()) {
        errors.Invalid(list.Index(i), uid, "must not be empty");
      } else if (!seen.insert(uid.Str()).second) {
        errors.Duplicate(list.Index(i), uid);
      }
    }
  }
}

void ValidateConditions(const StatusChange& change, const Path& path, FieldErrors& errors) {
  const Value& now = change.now;
  const bool complete = Is(now, "Complete"), failed = Is(now, "Failed");
  const bool failing = Is(now, "FailureTarget"), met = Is(now, "SuccessCriteriaMet");
  const bool complete_changed = change.OfCondition("Complete");
  const bool failed_changed = change.OfCondition("Failed");
  const auto reject = [&](bool wrong, std::string_view why) {
    if (wrong) errors.Invalid(path, why);
  };
  reject((complete_changed || failed_changed) && complete && failed,
         "cannot set Complete=True and Failed=true conditions");
  reject((complete_changed || change.OfCondition("FailureTarget")) && complete && failing,
         "cannot set Complete=True and FailureTarget=true conditions");
  reject((failed_changed || change.Of("failedIndexes")) && failed && !failing,
         "cannot set Failed=True condition without the FailureTarget=true condition");
  reject((complete_changed || change.OfCondition("SuccessCriteriaMet")) && complete && !met,
         "cannot set Complete=True condition without the SuccessCriteriaMet=true condition");
  reject(met && failed, "cannot set SuccessCriteriaMet=True and Failed=true conditions");
  reject(met && failing, "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions");
  reject(!change.spec["successPolicy"].IsNull() && complete && !met,
         "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True");
  for (const char* type : {"Failed", "Complete", "FailureTarget"}) {
    reject(Is(change.old, type) && !Is(now, type),
           fmt::format("cannot disable the terminal {}=True condition", type));
  }
  const bool was_met = Is(change.old, "SuccessCriteriaMet");
  reject(was_met && !met, "cannot disable the SuccessCriteriaMet=True condition");
  reject(Is(change.old, "Complete") && !was_met && met,
         "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions");
}

void ValidateTimes(const StatusChange& change, const Path& status, FieldErrors& errors) {
  const Value& start = change.now["startTime"];
  const Value& completion = change.now["completionTime"];
  const Path start_path = status.Child("startTime");
  const Path completion_path = status.Child("completionTime");
  const bool complete = Is(change.now, "Complete");
  if (change.OfCondition("Complete") || change.Of("completionTime")) {
    if (!completion.IsNull() && !complete) {
      errors.Invalid(completion_path, completion,
                     "cannot set completionTime when there is no Complete=True condition");
    }
    if (completion.IsNull() && complete)
      errors.Required(completion_path, "completionTime is required for Complete jobs");
  }
  const std::optional<Time> began = ParseTime(start.AsString());
  const std::optional<Time> ended = ParseTime(completion.AsString());
  if ((change.Of("startTime") || change.Of("completionTime")) && began && ended && *ended < *began)
    errors.Invalid(completion_path, completion, "completionTime cannot be set before startTime");
  if ((change.OfFinished() || change.Of("startTime")) && start.IsNull() && IsFinished(change.now))
    errors.Required(start_path, "startTime is required for finished job");
  const Value& old_completion = change.old["completionTime"];
  if (!completion.IsNull() && !old_completion.IsNull() && change.Of("completionTime"))
    errors.Invalid(completion_path, completion, "completionTime cannot be mutated");
  // A Job that is resumed starts anew (as upstream has it since 1.32.10).
  if (!change.old["startTime"].IsNull() && change.Of("startTime") &&
      !change.spec["suspend"].AsBool() && !Is(change.old, "Suspended")) {
    errors.Required(start_path, "startTime cannot be removed for unsuspended job");
  }
}

void ValidatePodCounts(const StatusChange& change, const Path& status, FieldErrors& errors) {
  const Value& now = change.now;
  const Value& spec = change.spec;
  if (IsFinished(now)) {
    for (const char* key : {"active", "terminating"}) {
      if ((change.OfFinished() || change.Of(key)) && now[key].AsInt() > 0) {
        errors.Invalid(status.Child(key), now[key],
                       fmt::format("{}>0 is invalid for finished job", key));
      }
    }
    const Value& uncounted = now["uncountedTerminatedPods"];
    if ((change.OfFinished() || change.Of("uncountedTerminatedPods")) &&
        uncounted["failed"].size() + uncounted["succeeded"].size() > 0) {
      errors.Invalid(status.Child("uncountedTerminatedPods"), uncounted,
                     "uncountedTerminatedPods needs to be empty for finished job");
    }
  }
  if ((change.Of("ready") || change.Of("active")) && now["ready"].AsInt() > now["active"].AsInt())
    errors.Invalid(status.Child("ready"), now["ready"], "cannot set more ready pods than active");
  // An indexed job that grows and shrinks as a whole may lose successes.
  const bool elastic =
      spec["completionMode"].AsString() == "Indexed" && spec["completions"] == spec["parallelism"];
  for (const char* key : {"failed", "succeeded"}) {
    if (now[key].AsInt() >= change.old[key].AsInt()) continue;
    if (elastic && std::string_view(key) == "succeeded") continue;
    errors.Invalid(status.Child(key), now[key].AsInt(),
                   fmt::format("cannot decrease the {} counter", key));
  }
}

// The first index that is in both; nullopt if none is.
std::optional<int64_t> FirstCommon(const std::vector<IndexInterval>& a,
                                   const std::vector<IndexInterval>& b) {
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const int64_t first = std::max(a[i].first, b[j].first);
    if (first <= std::min(a[i].last, b[j].last)) return first;
    if (a[i].last < b[j].last) {
      ++i;
    } else {
      ++j;
    }
  }
  return std::nullopt;
}

void ValidateIndexes(const StatusChange& change, const Path& status, FieldErrors& errors) {
  const Value& spec = change.spec;
  const Value& completed = change.now["completedIndexes"];
  const Value& failed = change.now["failedIndexes"];
  const Path completed_path = status.Child("completedIndexes");
  const Path failed_path = status.Child("failedIndexes");
  const bool bounded = !spec["completions"].IsNull();
  const bool per_index = !spec["backoffLimitPerIndex"].IsNull();
  const int64_t completions = spec["completions"].AsInt();
  const auto completed_list = ParseIndexIntervals(completed.AsString(), completions);
  const auto failed_list = ParseIndexIntervals(failed.AsString(), completions);
  if (change.Of("completedIndexes")) {
    if (bounded && !completed_list) {
      errors.Invalid(
          completed_path, completed,
          fmt::format("error parsing completedIndexes: {}", completed_list.error().message()));
    }
    if (!completed.AsString().empty() && spec["completionMode"].AsString() != "Indexed") {
      errors.Invalid(completed_path, completed,
                     "cannot set non-empty completedIndexes when non-indexed completion mode");
    }
  }
  if (change.Of("failedIndexes") && !failed.IsNull()) {
    if (bounded && per_index && !failed_list) {
      errors.Invalid(failed_path, failed,
                     fmt::format("error parsing failedIndexes: {}", failed_list.error().message()));
    }
    if (!per_index) {
      errors.Invalid(failed_path, failed,
                     "cannot set non-null failedIndexes when backoffLimitPerIndex is null");
    }
  }
  if (!change.Of("completedIndexes") && !change.Of("failedIndexes")) return;
  if (!bounded || failed.IsNull() || !completed_list || !failed_list) return;
  if (const std::optional<int64_t> common = FirstCommon(*completed_list, *failed_list)) {
    errors.Invalid(failed_path, failed,
                   fmt::format("failedIndexes and completedIndexes overlap at index: {}", *common));
  }
}

}  // namespace

void ValidateJobStatusUpdate(const Value& before, const Value& after, FieldErrors& errors) {
  const Path status("status");
  const StatusChange change{after["spec"], before["status"], after["status"]};
  ValidateNotNegative(change.now, status, {"active", "succeeded", "failed", "ready", "terminating"},
                      errors);
  ValidateUncounted(change.now["uncountedTerminatedPods"], status.Child("uncountedTerminatedPods"),
                    errors);
  ValidateConditions(change, status.Child("conditions"), errors);
  ValidateTimes(change, status, errors);
  ValidatePodCounts(change, status, errors);
  ValidateIndexes(change, status, errors);
}

}  // namespace muster::schema
