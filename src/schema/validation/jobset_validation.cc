// JobSet: kubernetes-sigs/jobset pkg/webhooks and the rules of its CRD; and what its Jobs would be
// refused for later.

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "schema/defaulting/kind_defaults.h"
#include "schema/validation/kind_validation.h"
#include "schema/validation/workload_parts.h"

namespace muster::schema {
namespace {

using json::Value;

constexpr size_t kMaxDependencies = 5;
constexpr size_t kMaxRuleNameLength = 128;
constexpr std::string_view kPodNameEnding = "-abcde";  // a pod's name ends in five letters

std::string_view NameOf(const Value& object) { return object["metadata"]["name"].AsString(); }

// With what its Job will get.
Value JobSpecOf(const Value& replicated_job) {
  return DefaultJob(json::Obj({{"spec", replicated_job["template"]["spec"]}}))["spec"];
}

bool HasReplicatedJob(const Value& spec, std::string_view name) {
  return std::ranges::any_of(spec["replicatedJobs"].items(), [&](const Value& replicated_job) {
    return replicated_job["name"].AsString() == name;
  });
}

// The names that become host names and names of Services. True: they may be longer still.
bool CheckGeneratedName(const std::string& generated, const Value& job_set,
                        std::string_view too_long, const Path& path, FieldErrors& errors) {
  if (generated.size() > kMaxDnsLabelLength) {
    errors.Invalid(Path("metadata").Child("name"), job_set["metadata"]["name"], too_long);
    return false;
  }
  Problems problems;
  CheckDns1035Label(generated, problems);
  for (const std::string& problem : problems) errors.Invalid(path, generated, problem);
  return problems.empty();
}

void ValidateNames(const Value& job_set, const Value& replicated_job, const Value& job_spec,
                   const Path& place, FieldErrors& errors) {
  const Path path = place.Child("name");
  const int64_t last = std::max<int64_t>(replicated_job["replicas"].AsInt(1), 1) - 1;
  const std::string job =
      fmt::format("{}-{}-{}", NameOf(job_set), replicated_job["name"].AsString(), last);
  if (!CheckGeneratedName(
          job, job_set,
          "JobSet name is too long, job names generated for this JobSet will exceed 63 characters",
          path, errors))
    return;
  const int64_t completions = job_spec["completions"].AsInt();
  if (job_spec["completionMode"].AsString() != "Indexed" || completions <= 0) return;
  CheckGeneratedName(
      fmt::format("{}-{}{}", job, completions - 1, kPodNameEnding), job_set,
      "JobSet name is too long, pod names generated for this JobSet will exceed 63 characters",
      path, errors);
}

void ValidateDependencies(const Value& spec, size_t index, const Path& place, FieldErrors& errors) {
  const Value& replicated_job = spec["replicatedJobs"].At(index);
  const Value& list = replicated_job["dependsOn"];
  if (list.empty()) return;
  const Path path = place.Child("dependsOn");
  if (list.size() > kMaxDependencies) return errors.TooMany(path, list.size(), kMaxDependencies);
  if (index == 0)
    return errors.Forbidden(path, "DependsOn can't be set for the first ReplicatedJob");
  for (size_t i = 0; i < list.size(); ++i) {
    const Value& name = list.At(i)["name"];
    bool earlier = false;
    for (size_t j = 0; j < index; ++j)
      earlier = earlier || spec["replicatedJobs"].At(j)["name"] == name;
    if (earlier) continue;
    const Path item = path.Index(i);
    errors.Invalid(item.Child("name"), name,
                   fmt::format("replicatedJob: {} cannot depend on replicatedJob: {}",
                               replicated_job["name"].AsString(), name.AsString()));
  }
}

void ValidateReplicatedJob(const Value& job_set, size_t index, const Path& place,
                           FieldErrors& errors) {
  const Value& replicated_job = job_set["spec"]["replicatedJobs"].At(index);
  const Value& replicas = replicated_job["replicas"];
  const Value job_spec = JobSpecOf(replicated_job);
  if (errors.NotNegative(place.Child("replicas"), replicas)) {
    // Both fit into 32 bits.
    if (replicas.AsInt(1) * job_spec["parallelism"].AsInt(1) > INT32_MAX) {
      errors.Invalid(place.Child("replicas"), replicas,
                     fmt::format("the product of replicas and parallelism must not exceed {} for "
                                 "replicatedJob '{}'",
                                 INT32_MAX, replicated_job["name"].AsString()));
    }
    ValidateNames(job_set, replicated_job, job_spec, place, errors);
  }
  const Path group = place.Child("groupName");
  if (replicated_job["groupName"].AsString().size() > kMaxDnsLabelLength) {
    errors.Invalid(group, replicated_job["groupName"],
                   ".spec.replicatedJob[].groupName is too long, must be less than 63 characters");
  } else {
    errors.Check(CheckDns1035Label, group, replicated_job["groupName"]);
  }
  ValidateDependencies(job_set["spec"], index, place, errors);
  const Path job_template = place.Child("template");
  ValidateJobTemplateSpec(job_spec, job_template.Child("spec"), errors);
}

void ValidateNetwork(const Value& network, const Path& path, FieldErrors& errors) {
  const Value& subdomain = network["subdomain"];
  if (subdomain.AsString().empty()) return;
  const Path place = path.Child("subdomain");
  if (subdomain.AsString().size() > kMaxDnsLabelLength) {
    errors.Invalid(place, subdomain,
                   ".spec.network.subdomain is too long, must be less than 63 characters");
  } else if (errors.Check(CheckDns1123Subdomain, place, subdomain)) {
    errors.Check(CheckDns1035Label, place, subdomain);  // it is also the name of a Service
  }
}

void ValidateTargets(const Value& spec, const Value& policy, const Path& path,
                     std::string_view where, FieldErrors& errors) {
  const Value& targets = policy["targetReplicatedJobs"];
  const Path list = path.Child("targetReplicatedJobs");
  for (size_t i = 0; i < targets.size(); ++i) {
    const std::string_view name = targets.At(i).AsString();
    if (HasReplicatedJob(spec, name)) continue;
    errors.Invalid(list.Index(i), name,
                   fmt::format("invalid replicatedJob name '{}'{} does not appear in "
                               ".spec.ReplicatedJobs",
                               name, where));
  }
}

bool IsRuleName(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto inner = [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '_'; };
  return letter(name.front()) && inner(name.back()) &&
         std::ranges::all_of(name, [&](char c) { return inner(c) || c == ',' || c == ':'; });
}

void ValidateRuleName(const Value& name, const Path& path, FieldErrors& errors) {
  const std::string_view text = name.AsString();
  if (text.empty() || text.size() > kMaxRuleNameLength) {
    errors.Invalid(path, name,
                   fmt::format("invalid failure policy rule name of length {}, the rule name must "
                               "be at least 1 characters long and at most {} characters long",
                               text.size(), kMaxRuleNameLength));
  }
  if (!text.empty() && !IsRuleName(text)) {
    errors.Invalid(path, name,
                   fmt::format("invalid failure policy rule name '{}', a failure policy rule name "
                               "must start with an alphabetic character, optionally followed by a "
                               "string of alphanumeric characters or '_,:', and must end with an "
                               "alphanumeric character or '_'",
                               text));
  }
}

void ValidateReasons(const Value& rule, const Path& place, FieldErrors& errors) {
  static constexpr std::string_view kReasons[] = {"BackoffLimitExceeded", "DeadlineExceeded",
                                                  "FailedIndexes", "MaxFailedIndexesExceeded",
                                                  "PodFailurePolicy"};
  const Value& reasons = rule["onJobFailureReasons"];
  const Path list = place.Child("onJobFailureReasons");
  for (size_t i = 0; i < reasons.size(); ++i) {
    const std::string_view reason = reasons.At(i).AsString();
    if (std::ranges::find(kReasons, reason) != std::end(kReasons)) continue;
    errors.Invalid(list.Index(i), reason,
                   fmt::format("invalid job failure reason '{}' in failure policy is not a "
                               "recognized job failure reason",
                               reason));
  }
}

void ValidateFailurePolicy(const Value& spec, const Path& path, FieldErrors& errors) {
  const Value& rules = spec["failurePolicy"]["rules"];
  const Path list = path.Child("rules");
  std::map<std::string_view, std::string> indexes;
  for (size_t i = 0; i < rules.size(); ++i) {
    const Value& rule = rules.At(i);
    const Path place = list.Index(i);
    ValidateRuleName(rule["name"], place.Child("name"), errors);
    ValidateTargets(spec, rule, place, " in failure policy", errors);
    ValidateReasons(rule, place, errors);
    std::string& known = indexes[rule["name"].AsString()];
    known += fmt::format("{}{}", known.empty() ? "" : " ", i);
  }
  for (const auto& [name, numbers] : indexes) {
    if (numbers.find(' ') == std::string::npos) continue;
    errors.Invalid(list,
                   fmt::format("rule names are not unique, rules with indices [{}] all have the "
                               "same name '{}'",
                               numbers, name));
  }
}

void ValidateCoordinator(const Value& job_set, const Path& path, FieldErrors& errors) {
  const Value& spec = job_set["spec"];
  const Value& pod = spec["coordinator"];
  const Value& name = pod["replicatedJob"];
  const Value* replicated_job = nullptr;
  for (const Value& item : spec["replicatedJobs"].items()) {
    if (item["name"] == name) replicated_job = &item;
  }
  if (replicated_job == nullptr) {
    return errors.Invalid(
        path.Child("replicatedJob"), name,
        fmt::format("coordinator replicatedJob {} does not exist", name.AsString()));
  }
  const int64_t job_index = pod["jobIndex"].AsInt();
  const int64_t pod_index = pod["podIndex"].AsInt();
  const Value job = JobSpecOf(*replicated_job);
  if (job_index < 0 || job_index >= (*replicated_job)["replicas"].AsInt(1)) {
    errors.Invalid(path.Child("jobIndex"), pod["jobIndex"],
                   fmt::format("coordinator job index {} is invalid for replicatedJob {}",
                               job_index, name.AsString()));
  } else if (job["completionMode"].AsString() != "Indexed") {
    errors.Invalid(path.Child("replicatedJob"), name,
                   "job for coordinator pod must be indexed completion mode");
  } else if (pod_index < 0 || pod_index >= job["completions"].AsInt()) {
    errors.Invalid(path.Child("podIndex"), pod["podIndex"],
                   fmt::format("coordinator pod index {} is invalid for replicatedJob {} job index "
                               "{}",
                               pod_index, name.AsString(), job_index));
  }
  // The address becomes the value of a label.
  const std::string_view subdomain = spec["network"]["subdomain"].AsString(NameOf(job_set));
  const std::string address =
      fmt::format("{}-{}-{}-{}.{}", NameOf(job_set), name.AsString(), job_index, pod_index,
                  subdomain.empty() ? NameOf(job_set) : subdomain);
  if (address.size() > kMaxLabelValueLength) {
    errors.Invalid(path, fmt::format("its address {} becomes the label "
                                     "jobset.sigs.k8s.io/coordinator, whose value must be no more "
                                     "than {} characters: choose a shorter name or subdomain",
                                     address, kMaxLabelValueLength));
  }
}

constexpr std::string_view kGang = "muster.dev/gang";

const Value& GangOf(const Value& job_set) { return job_set["metadata"]["annotations"][kGang]; }

// "True" or "yes" would otherwise be no gang without a word.
void ValidateGangValue(const Value& job_set, FieldErrors& errors) {
  if (GangOf(job_set).IsNull()) return;
  const Path metadata("metadata");
  const Path annotations = metadata.Child("annotations");
  errors.OneOf(annotations.Key(kGang), GangOf(job_set), {"false", "true"});
}

// Pods that come one after another cannot get their places together.
void ValidateGang(const Value& job_set, bool depends, FieldErrors& errors) {
  const Value& spec = job_set["spec"];
  if (GangOf(job_set).AsString() != "true") return;
  if (!depends && spec["startupPolicy"]["startupPolicyOrder"].AsString() != "InOrder") return;
  const Path metadata("metadata");
  const Path annotations = metadata.Child("annotations");
  errors.Forbidden(annotations.Key(kGang),
                   "pods that are started in an order (startupPolicy InOrder, dependsOn) cannot "
                   "get their places together: remove the annotation or the order");
}

// The former template as if what may change while it is suspended had always been as it is now.
Value WithDirectivesOf(const Value& now, Value old) {
  for (const auto& [part, key] : {std::pair{"metadata", "annotations"},
                                  {"metadata", "labels"},
                                  {"spec", "nodeSelector"},
                                  {"spec", "tolerations"},
                                  {"spec", "schedulingGates"}}) {
    const Value* value = now[part].Find(key);
    if (value != nullptr) {
      old = std::move(old).SetPath({part, key}, *value);
    } else if (old[part].Has(key)) {
      old = old.RemovePath({part, key});
    }
  }
  // A template without metadata is one with empty metadata.
  return old.Has("metadata") ? old : std::move(old).Set("metadata", json::Obj());
}

Value Comparable(const Value& replicated_job, const Value& directives) {
  return replicated_job.SetPath(
      {"template", "spec", "template"},
      WithDirectivesOf(directives, replicated_job["template"]["spec"]["template"]));
}

bool SameReplicatedJobs(const Value& before, const Value& after) {
  const Value& old = before["replicatedJobs"];
  const Value& now = after["replicatedJobs"];
  if (old == now) return true;
  if (!before["suspend"].AsBool() && !after["suspend"].AsBool()) return false;
  if (old.size() != now.size()) return false;
  for (size_t i = 0; i < old.size(); ++i) {
    const Value& directives = now.At(i)["template"]["spec"]["template"];
    if (!(Comparable(old.At(i), directives) == Comparable(now.At(i), directives))) return false;
  }
  return true;
}

}  // namespace

void ValidateJobSet(const Value& job_set, FieldErrors& errors) {
  const Value& spec = job_set["spec"];
  const Path path("spec");
  const Path list = path.Child("replicatedJobs");
  const Value& replicated_jobs = spec["replicatedJobs"];
  bool depends = false;
  int64_t jobs = 0;
  for (size_t i = 0; i < replicated_jobs.size(); ++i) {
    depends = depends || replicated_jobs.At(i).Has("dependsOn");
    jobs += replicated_jobs.At(i)["replicas"].AsInt(1);
    ValidateReplicatedJob(job_set, i, list.Index(i), errors);
  }
  if (jobs > kMaxJobsOfJobSet) {
    errors.Invalid(list, fmt::format("the replicas of all replicatedJobs are {} Jobs together; at "
                                     "most {} are made for one JobSet: use fewer Jobs of more pods "
                                     "(parallelism, completions), or several JobSets",
                                     jobs, kMaxJobsOfJobSet));
  }
  if (depends && spec["startupPolicy"]["startupPolicyOrder"].AsString() == "InOrder")
    errors.Invalid(path, "StartupPolicy and DependsOn APIs are mutually exclusive");
  ValidateGang(job_set, depends, errors);
  ValidateNetwork(spec["network"], path.Child("network"), errors);
  if (!spec["managedBy"].IsNull())
    ValidateManagedBy(spec["managedBy"], path.Child("managedBy"), errors);
  ValidateTargets(spec, spec["successPolicy"], path.Child("successPolicy"), "", errors);
  ValidateFailurePolicy(spec, path.Child("failurePolicy"), errors);
  if (!spec["coordinator"].IsNull())
    ValidateCoordinator(job_set, path.Child("coordinator"), errors);
  const Value& ttl = spec["ttlSecondsAfterFinished"];
  if (ttl.AsInt() < 0) {
    errors.Invalid(path.Child("ttlSecondsAfterFinished"), ttl,
                   "spec.ttlSecondsAfterFinished in body should be greater than or equal to 0");
  }
}

void ValidateJobSetCreate(const Value& job_set, FieldErrors& errors) {
  ValidateGangValue(job_set, errors);
}

void ValidateJobSetUpdate(const Value& before, const Value& after, FieldErrors& errors) {
  // One that is there already with another value stays changeable.
  if (!(GangOf(before) == GangOf(after))) ValidateGangValue(after, errors);
  const Path path("spec");
  const Value& old = before["spec"];
  const Value& now = after["spec"];
  // As the rules of upstream's CRD: what is not there before or after may come and go.
  for (const char* key : {"network", "successPolicy", "failurePolicy", "startupPolicy"}) {
    if (!old[key].IsNull() && !now[key].IsNull() && !(old[key] == now[key]))
      errors.Invalid(path.Child(key), "object", "Value is immutable");
  }
  if (!SameReplicatedJobs(old, now))
    errors.Invalid(path.Child("replicatedJobs"), now["replicatedJobs"], kImmutable);
  ValidateUnchanged(old["managedBy"], now["managedBy"], path.Child("managedBy"), errors);
}

}  // namespace muster::schema
