// Job and CronJob: k8s.io/kubernetes pkg/apis/batch/validation.

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "schema/cron_schedule.h"
#include "schema/index_intervals.h"
#include "schema/job_labels.h"
#include "schema/label_selector.h"
#include "schema/time_zones.h"
#include "schema/validation/kind_validation.h"
#include "schema/validation/workload_parts.h"

namespace muster::schema {
namespace {

using json::Value;

constexpr size_t kMaxFailureRules = 20;
constexpr size_t kMaxConditionPatterns = 20;
constexpr size_t kMaxExitCodes = 255;
constexpr size_t kMaxSuccessRules = 20;
constexpr size_t kMaxSucceededIndexesBytes = size_t{64} * 1024;
constexpr size_t kMaxManagedByBytes = 63;
constexpr int64_t kMaxIndexedParallelism = 100'000;
constexpr int64_t kMaxFailedIndexes = 100'000;
// Indexed jobs with more completions than this have narrower limits if indexes may fail.
constexpr int64_t kManyCompletions = 100'000;
constexpr int64_t kMaxParallelismOfMany = 10'000;
constexpr int64_t kMaxFailedIndexesOfMany = 10'000;
constexpr size_t kMaxCronJobName = 52;  // its jobs are called <name>-<minutes since 1970>
constexpr size_t kMaxTimeZonePart = 14;

bool IsIndexed(const Value& spec) { return spec["completionMode"].AsString() == "Indexed"; }

void ValidateIndexed(const Value& spec, const Path& path, FieldErrors& errors) {
  const Value& completions = spec["completions"];
  const Path parallelism = path.Child("parallelism");
  const Path most_failed = path.Child("maxFailedIndexes");
  const int64_t at_once = spec["parallelism"].AsInt();
  const int64_t failed = spec["maxFailedIndexes"].AsInt();
  if (completions.IsNull())
    errors.Required(path.Child("completions"), "when completion mode is Indexed");
  if (at_once > kMaxIndexedParallelism) {
    errors.Invalid(parallelism, at_once,
                   fmt::format("must be less than or equal to {} when completion mode is Indexed",
                               kMaxIndexedParallelism));
  }
  if (!completions.IsNull() && failed > completions.AsInt())
    errors.Invalid(most_failed, failed, "must be less than or equal to completions");
  if (failed > kMaxFailedIndexes) {
    errors.Invalid(most_failed, failed,
                   fmt::format("must be less than or equal to {}", kMaxFailedIndexes));
  }
  if (completions.AsInt() <= kManyCompletions || spec["backoffLimitPerIndex"].IsNull()) return;
  if (spec["maxFailedIndexes"].IsNull()) {
    errors.Required(most_failed, fmt::format("must be specified when completions is above {}",
                                             kManyCompletions));
  }
  const auto limit = [&](const Path& place, int64_t value, int64_t most) {
    if (value <= most) return;
    errors.Invalid(place, value,
                   fmt::format("must be less than or equal to {} when completions are above {} "
                               "and used with backoff limit per index",
                               most, kManyCompletions));
  };
  limit(parallelism, at_once, kMaxParallelismOfMany);
  limit(most_failed, failed, kMaxFailedIndexesOfMany);
}

void ValidateCompletionMode(const Value& spec, const Path& path, FieldErrors& errors) {
  if (!spec["completionMode"].IsNull()) {
    errors.OneOf(path.Child("completionMode"), spec["completionMode"], {"NonIndexed", "Indexed"});
  }
  if (!spec["maxFailedIndexes"].IsNull() && spec["backoffLimitPerIndex"].IsNull())
    errors.Required(path.Child("backoffLimitPerIndex"), "when maxFailedIndexes is specified");
  if (IsIndexed(spec)) return ValidateIndexed(spec, path, errors);
  for (const char* key : {"backoffLimitPerIndex", "maxFailedIndexes"}) {
    if (!spec[key].IsNull())
      errors.Invalid(path.Child(key), spec[key], "requires indexed completion mode");
  }
}

void ValidateExitCodes(const Value& codes, const Path& path,
                       const std::set<std::string>& containers, FieldErrors& errors) {
  const std::string_view op = codes["operator"].AsString();
  if (op.empty()) {
    errors.Required(path.Child("operator"), "valid values: [\"In\" \"NotIn\"]");
  } else {
    errors.OneOf(path.Child("operator"), op, {"In", "NotIn"});
  }
  const Value& container = codes["containerName"];
  if (!container.IsNull() && !containers.contains(container.Str())) {
    errors.Invalid(path.Child("containerName"), container,
                   "must be one of the container or initContainer names in the pod template");
  }
  const Value& values = codes["values"];
  const Path list = path.Child("values");
  if (values.empty()) errors.Invalid(list, values, "at least one value is required");
  if (values.size() > kMaxExitCodes) errors.TooMany(list, values.size(), kMaxExitCodes);
  std::set<int64_t> seen;
  bool ordered = true;
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t code = values.At(i).AsInt();
    if (op == "In" && code == 0)
      errors.Invalid(list.Index(i), code, "must not be 0 for the In operator");
    if (!seen.insert(code).second) errors.Duplicate(list.Index(i), code);
    ordered = ordered && (i == 0 || values.At(i - 1).AsInt() <= code);
  }
  if (!ordered) errors.Invalid(list, values, "must be ordered");
}

void ValidateConditionPatterns(const Value& patterns, const Path& path, FieldErrors& errors) {
  if (patterns.size() > kMaxConditionPatterns)
    errors.TooMany(path, patterns.size(), kMaxConditionPatterns);
  for (size_t i = 0; i < patterns.size(); ++i) {
    const Path place = path.Index(i);
    errors.Check(CheckQualifiedName, place.Child("type"), patterns.At(i)["type"].AsString());
    errors.OneOf(place.Child("status"), patterns.At(i)["status"], {"False", "True", "Unknown"});
  }
}

void ValidateFailureRule(const Value& rule, bool per_index, const Path& path,
                         const std::set<std::string>& containers, FieldErrors& errors) {
  const Path action_path = path.Child("action");
  const std::string_view action = rule["action"].AsString();
  if (action.empty()) {
    errors.Required(action_path, "valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]");
  } else if (errors.OneOf(action_path, action, {"Count", "FailIndex", "FailJob", "Ignore"}) &&
             action == "FailIndex" && !per_index) {
    errors.Invalid(action_path, action, "requires the backoffLimitPerIndex to be set");
  }
  const bool codes = !rule["onExitCodes"].IsNull();
  const bool conditions = !rule["onPodConditions"].empty();
  if (codes) ValidateExitCodes(rule["onExitCodes"], path.Child("onExitCodes"), containers, errors);
  if (conditions)
    ValidateConditionPatterns(rule["onPodConditions"], path.Child("onPodConditions"), errors);
  if (codes && conditions)
    errors.Invalid(path, "specifying both OnExitCodes and OnPodConditions is not supported");
  if (!codes && !conditions)
    errors.Invalid(path, "specifying one of OnExitCodes and OnPodConditions is required");
}

void ValidateFailurePolicy(const Value& spec, const Path& path, FieldErrors& errors) {
  std::set<std::string> containers;
  for (const char* list : {"containers", "initContainers"}) {
    for (const Value& container : spec["template"]["spec"][list].items())
      containers.insert(container["name"].Str());
  }
  const Value& rules = spec["podFailurePolicy"]["rules"];
  const Path list = path.Child("rules");
  if (rules.size() > kMaxFailureRules) errors.TooMany(list, rules.size(), kMaxFailureRules);
  const bool per_index = !spec["backoffLimitPerIndex"].IsNull();
  for (size_t i = 0; i < rules.size(); ++i)
    ValidateFailureRule(rules.At(i), per_index, list.Index(i), containers, errors);
}

void ValidateSuccessRule(const Value& rule, int64_t completions, const Path& path,
                         FieldErrors& errors) {
  const Value& indexes = rule["succeededIndexes"];
  const Value& count = rule["succeededCount"];
  if (indexes.IsNull() && count.IsNull()) {
    errors.Required(path, "at least one of succeededCount or succeededIndexes must be specified");
  }
  int64_t total = 0;
  if (!indexes.IsNull()) {
    const Path place = path.Child("succeededIndexes");
    if (indexes.AsString().size() > kMaxSucceededIndexesBytes)
      errors.TooLong(place, kMaxSucceededIndexesBytes);
    const auto intervals = ParseIndexIntervals(indexes.AsString(), completions);
    if (intervals) {
      total = CountIndexes(*intervals);
    } else {
      errors.Invalid(
          place, indexes,
          fmt::format("error parsing succeededIndexes: {}", intervals.error().message()));
    }
  }
  if (count.IsNull()) return;
  const Path place = path.Child("succeededCount");
  errors.NotNegative(place, count);
  if (count.AsInt() > completions) {
    errors.Invalid(place, count,
                   fmt::format("must be less than or equal to {} (the number of specified "
                               "completions)",
                               completions));
  }
  if (!indexes.IsNull() && count.AsInt() > total) {
    errors.Invalid(place, count,
                   fmt::format("must be less than or equal to {} (the number of indexes in the "
                               "specified succeededIndexes field)",
                               total));
  }
}

void ValidateSuccessPolicy(const Value& spec, const Path& path, FieldErrors& errors) {
  if (!IsIndexed(spec))
    return errors.Invalid(path, spec["successPolicy"], "requires indexed completion mode");
  const Value& rules = spec["successPolicy"]["rules"];
  const Path list = path.Child("rules");
  if (rules.empty()) {
    errors.Required(list,
                    "at least one rules must be specified when the successPolicy is specified");
  }
  if (rules.size() > kMaxSuccessRules) errors.TooMany(list, rules.size(), kMaxSuccessRules);
  for (size_t i = 0; i < rules.size(); ++i)
    ValidateSuccessRule(rules.At(i), spec["completions"].AsInt(), list.Index(i), errors);
}

void ValidateRestartPolicy(const Value& spec, const Path& path, FieldErrors& errors) {
  const Value& value = spec["template"]["spec"]["restartPolicy"];
  const std::string_view policy = value.AsString();
  if (policy.empty() || policy == "Always") {
    errors.Required(path, "valid values: \"OnFailure\", \"Never\"");
  } else if (errors.OneOf(path, value, {"OnFailure", "Never"}) && policy != "Never" &&
             !spec["podFailurePolicy"].IsNull()) {
    errors.Invalid(path, value, "only \"Never\" is supported when podFailurePolicy is specified");
  }
}

// What holds for a Job and for the Job inside a CronJob.
void ValidateJobParts(const Value& spec, const Path& path, FieldErrors& errors) {
  ValidateNotNegative(spec, path,
                      {"parallelism", "completions", "activeDeadlineSeconds", "backoffLimit",
                       "ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes"},
                      errors);
  if (!spec["managedBy"].IsNull())
    ValidateManagedBy(spec["managedBy"], path.Child("managedBy"), errors);
  ValidateCompletionMode(spec, path, errors);
  const bool failure_policy = !spec["podFailurePolicy"].IsNull();
  if (failure_policy) ValidateFailurePolicy(spec, path.Child("podFailurePolicy"), errors);
  if (!spec["successPolicy"].IsNull())
    ValidateSuccessPolicy(spec, path.Child("successPolicy"), errors);
  const Value& replacement = spec["podReplacementPolicy"];
  if (!replacement.IsNull() && failure_policy) {
    errors.OneOf(path.Child("podReplacementPolicy"), replacement, {"Failed"});
  } else if (!replacement.IsNull()) {
    errors.OneOf(path.Child("podReplacementPolicy"), replacement,
                 {"Failed", "TerminatingOrFailed"});
  }
  const Path pod_template = path.Child("template");
  ValidatePodTemplate(spec["template"], pod_template, errors);
  const Path pod = pod_template.Child("spec");
  ValidateRestartPolicy(spec, pod.Child("restartPolicy"), errors);
}

// The labels and the selector that the server made, unless the user wanted to make them.
void ValidateGenerated(const Value& job, FieldErrors& errors) {
  const Value& spec = job["spec"];
  if (spec["manualSelector"].AsBool() || spec["selector"].IsNull()) return;
  const Path spec_path("spec");
  const Path pod_template = spec_path.Child("template");
  const Path metadata = pod_template.Child("metadata");
  const Path labels_path = metadata.Child("labels");
  const Value& labels = spec["template"]["metadata"]["labels"];
  const Value expected = GeneratedJobLabels(job["metadata"]);
  for (const auto& [key, value] : expected.members()) {
    const std::string wanted = fmt::format("must be '{}'", value.AsString());
    if (!labels.Has(key)) {
      errors.Required(labels_path.Key(key), wanted);
    } else if (!(labels[key] == value)) {
      errors.Invalid(labels_path.Key(key), labels, wanted);
    }
  }
  const Result<LabelSelector> selector = LabelSelector::FromJson(spec["selector"]);
  if (selector && !selector->Matches(expected))
    errors.Invalid(spec_path.Child("selector"), spec["selector"], "`selector` not auto-generated");
}

// The host names of an indexed job's pods end in their index.
void ValidateHostNames(const Value& job, FieldErrors& errors) {
  const int64_t completions = job["spec"]["completions"].AsInt();
  if (!IsIndexed(job["spec"]) || completions <= 0) return;
  const Value& name = job["metadata"]["name"];
  const std::string longest = fmt::format("{}-{}", name.AsString(), completions - 1);
  Problems problems;
  CheckDns1123Label(longest, problems);
  if (problems.empty()) return;
  errors.Invalid(Path("metadata").Child("name"), name,
                 "will not able to create pod with invalid DNS label: " + longest);
}

void CopyMember(const Value& from, std::string_view key, Value& to) {
  const Value* value = from.Find(key);
  to = value == nullptr ? to.Remove(key) : std::move(to).Set(key, *value);
}

// The former template as if what a job that never ran may change had always been as it is now.
Value WithDirectivesOf(const Value& now, Value old) {
  Value metadata = old["metadata"];
  Value spec = old["spec"];
  for (const char* key : {"labels", "annotations"}) CopyMember(now["metadata"], key, metadata);
  for (const char* key : {"nodeSelector", "tolerations", "schedulingGates"})
    CopyMember(now["spec"], key, spec);
  const Value& affinity = now["spec"]["affinity"];
  Value old_affinity = spec["affinity"];
  if (!affinity.IsNull() && old_affinity.IsNull()) old_affinity = json::Obj();
  CopyMember(affinity, "nodeAffinity", old_affinity);
  const bool none = old_affinity.empty() && affinity.IsNull();
  spec = none ? spec.Remove("affinity") : std::move(spec).Set("affinity", old_affinity);
  return std::move(old).Set("metadata", metadata).Set("spec", spec);
}

void ValidateTemplateUpdate(const Value& before, const Value& after, FieldErrors& errors) {
  const Value& now = after["spec"]["template"];
  Value old = before["spec"]["template"];
  const bool never_ran =
      before["spec"]["suspend"].AsBool() && before["status"]["startTime"].IsNull();
  if (never_ran) old = WithDirectivesOf(now, std::move(old));
  // A template without metadata is one with empty metadata.
  const Value comparable = now.Has("metadata") ? now : now.Set("metadata", json::Obj());
  if (!old.Has("metadata")) old = std::move(old).Set("metadata", json::Obj());
  if (!(comparable == old)) errors.Invalid(Path("spec").Child("template"), now, kImmutable);
}

// An indexed job may grow and shrink, but only as a whole.
void ValidateCompletionsUpdate(const Value& old, const Value& now, FieldErrors& errors) {
  const Path spec("spec");
  const Path path = spec.Child("completions");
  if (!IsIndexed(now))
    return ValidateUnchanged(old["completions"], now["completions"], path, errors);
  if (now["completions"].IsNull() || old["completions"] == now["completions"]) return;
  if (!(now["completions"] == now["parallelism"]))
    errors.Invalid(path, now["completions"],
                   "can only be modified in tandem with spec.parallelism");
}

void ValidateSchedule(const Value& schedule, const Path& path, FieldErrors& errors) {
  const std::string_view text = schedule.AsString();
  if (text.empty()) return errors.Required(path);
  if (const Result<CronSchedule> parsed = CronSchedule::Parse(text); !parsed)
    errors.Invalid(path, schedule, parsed.error().message());
  if (text.find("TZ") != std::string_view::npos) {
    errors.Invalid(path, schedule,
                   "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
  }
}

bool IsTimeZonePart(std::string_view part) {
  constexpr std::string_view kMarks = ".-_+";
  return !part.empty() && part.size() <= kMaxTimeZonePart && part != "." && part != ".." &&
         part[0] != '-' && std::ranges::all_of(part, [&](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  kMarks.find(c) != std::string_view::npos;
         });
}

void ValidateTimeZone(const Value& zone, const Path& path, FieldErrors& errors) {
  if (zone.IsNull()) return;
  const std::string_view name = zone.AsString();
  if (name.empty()) return errors.Invalid(path, zone, "timeZone must be nil or non-empty string");
  const std::string unknown = fmt::format("unknown time zone {}", name);
  if (!std::ranges::all_of(Split(name, '/'), IsTimeZonePart))
    return errors.Invalid(path, zone, unknown);
  if (EqualsIgnoreCase(name, "Local")) {
    errors.Invalid(path, zone,
                   "timeZone must be an explicit time zone as defined in "
                   "https://www.iana.org/time-zones");
  }
  // Go takes its machine's zone for "Local" and looks for any other spelling in the database.
  if (name != "Local" && PosixTimeZone(name).empty()) errors.Invalid(path, zone, unknown);
}

}  // namespace

void ValidateManagedBy(const Value& manager, const Path& path, FieldErrors& errors) {
  const std::string_view text = manager.AsString();
  const size_t slash = text.find('/');
  if (text.empty()) {
    errors.Required(path);
  } else if (slash == 0 || slash == std::string_view::npos || slash + 1 == text.size()) {
    errors.Invalid(path, manager, "must be a domain-prefixed path (such as \"acme.io/foo\")");
  } else {
    errors.Check(CheckDns1123Subdomain, path, text.substr(0, slash));
    constexpr std::string_view kMarks = "/-._~%!$&'()*+,;=:";
    const bool fine = std::ranges::all_of(text.substr(slash + 1), [&](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             kMarks.find(c) != std::string_view::npos;
    });
    if (!fine) {
      errors.Invalid(path, text.substr(slash + 1),
                     "Invalid path (regex used for validation is "
                     "'[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')");
    }
  }
  if (text.size() > kMaxManagedByBytes) errors.TooLong(path, kMaxManagedByBytes);
}

void ValidateJobTemplateSpec(const Value& spec, const Path& path, FieldErrors& errors) {
  ValidateJobParts(spec, path, errors);
}

void ValidateJob(const Value& job, FieldErrors& errors) {
  const Path path("spec");
  const Value& spec = job["spec"];
  ValidateGenerated(job, errors);
  ValidateJobParts(spec, path, errors);
  if (spec["selector"].IsNull()) {
    errors.Required(path.Child("selector"));
  } else {
    ValidateLabelSelector(spec["selector"], path.Child("selector"), errors);
  }
  ValidateSelectorMatches(spec, path, errors);
  ValidateHostNames(job, errors);
}

void ValidateJobUpdate(const Value& before, const Value& after, FieldErrors& errors) {
  const Path path("spec");
  const Value& old = before["spec"];
  const Value& now = after["spec"];
  ValidateCompletionsUpdate(old, now, errors);
  ValidateTemplateUpdate(before, after, errors);
  for (const char* key : {"selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex",
                          "managedBy", "successPolicy"}) {
    ValidateUnchanged(old[key], now[key], path.Child(key), errors);
  }
}

void ValidateCronJob(const Value& cron_job, FieldErrors& errors) {
  const Path path("spec");
  const Value& spec = cron_job["spec"];
  ValidateSchedule(spec["schedule"], path.Child("schedule"), errors);
  ValidateTimeZone(spec["timeZone"], path.Child("timeZone"), errors);
  ValidateNotNegative(
      spec, path,
      {"startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"}, errors);
  errors.OneOf(path.Child("concurrencyPolicy"), spec["concurrencyPolicy"],
               {"Allow", "Forbid", "Replace"});
  const Path job = path.Child("jobTemplate");
  const Path job_spec = job.Child("spec");
  const Value& inner = spec["jobTemplate"]["spec"];
  ValidateJobParts(inner, job_spec, errors);
  if (!inner["selector"].IsNull()) {
    errors.Invalid(job_spec.Child("selector"), inner["selector"],
                   "`selector` will be auto-generated");
  }
  if (inner["manualSelector"].AsBool()) {
    errors.NotSupported(job_spec.Child("manualSelector"), inner["manualSelector"],
                        {"nil", "false"});
  }
}

void ValidateCronJobCreate(const Value& cron_job, FieldErrors& errors) {
  const Value& name = cron_job["metadata"]["name"];
  if (name.AsString().size() <= kMaxCronJobName) return;
  errors.Invalid(Path("metadata").Child("name"), name, "must be no more than 52 characters");
}

}  // namespace muster::schema
