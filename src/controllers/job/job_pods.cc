#include "controllers/job/job_pods.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "base/bounded_seconds.h"
#include "base/strings.h"
#include "controllers/pods/pod_facts.h"
#include "controllers/pods/pod_template.h"
#include "schema/conditions.h"
#include "schema/pod_phase.h"

namespace muster::controllers {
namespace {

constexpr std::string_view kCompletionIndex = "batch.kubernetes.io/job-completion-index";
constexpr std::string_view kFailureCount = "batch.kubernetes.io/job-index-failure-count";
constexpr std::string_view kIgnoredCount = "batch.kubernetes.io/job-index-ignored-failure-count";
constexpr char kIndexVariable[] = "JOB_COMPLETION_INDEX";
constexpr size_t kMaxNamePrefix = 58;  // with the hyphen; five letters follow

bool IsDeleting(const json::Value& pod) { return pod["metadata"].Has("deletionTimestamp"); }

int64_t CountAnnotation(const json::Value& pod, std::string_view name) {
  const int64_t count = ParseInt(pod["metadata"]["annotations"][name].AsString()).value_or(0);
  return count < 0 || count > std::numeric_limits<int32_t>::max() ? 0 : count;
}

// Of all these containers; nullopt if one of them has not ended.
std::optional<Time> LastEnd(const json::Value& pod) {
  std::set<std::string_view> sidecars;
  for (const json::Value& container : pod["spec"]["initContainers"].items()) {
    if (container["restartPolicy"].AsString() == "Always")
      sidecars.insert(container["name"].AsString());
  }
  std::optional<Time> last;
  const auto take = [&last](const json::Value& status) {
    const std::optional<Time> end =
        ParseTime(status.Path({"state", "terminated", "finishedAt"}).AsString());
    if (end.has_value() && (!last.has_value() || *end > *last)) last = end;
    return end.has_value();
  };
  for (const json::Value& status : pod["status"]["containerStatuses"].items()) {
    if (!take(status)) return std::nullopt;
  }
  for (const json::Value& status : pod["status"]["initContainerStatuses"].items()) {
    if (sidecars.contains(status["name"].AsString()) && !take(status)) return std::nullopt;
  }
  return last;
}

json::Value WithIndexVariable(const json::Value& containers) {
  json::Array out;
  for (const json::Value& container : containers.items()) {
    const json::Array& env = container["env"].items();
    const bool has_it = std::any_of(env.begin(), env.end(), [](const json::Value& variable) {
      return variable["name"].AsString() == kIndexVariable;
    });
    if (has_it) {
      out.push_back(container);
      continue;
    }
    json::Value source = json::Obj(
        {{"fieldRef",
          json::Obj({{"fieldPath", fmt::format("metadata.labels['{}']", kCompletionIndex)}})}});
    json::Value variable = json::Obj({{"name", kIndexVariable}, {"valueFrom", std::move(source)}});
    out.push_back(container.Set("env", container["env"].Append(std::move(variable))));
  }
  return json::Value(std::move(out));
}

json::Value WithIndex(json::Value pod, std::string_view job_name, int64_t index) {
  const std::string text = fmt::format("{}", index);
  pod = std::move(pod).SetPath({"metadata", "annotations", kCompletionIndex}, text);
  pod = std::move(pod).SetPath({"metadata", "labels", kCompletionIndex}, text);
  pod = std::move(pod).SetPath({"spec", "hostname"}, fmt::format("{}-{}", job_name, index));
  for (const char* member : {"initContainers", "containers"}) {
    const json::Value containers = pod["spec"][member];
    if (!containers.empty())
      pod = std::move(pod).SetPath({"spec", member}, WithIndexVariable(containers));
  }
  return pod;
}

}  // namespace

const json::Fields& JobPodFields() {
  static const json::Fields fields = [] {
    json::Fields all{{"metadata", "annotations"},
                     {"metadata", "deletionGracePeriodSeconds"},
                     {"spec", "initContainers", "name"},
                     {"spec", "initContainers", "restartPolicy"},
                     {"status", "containerStatuses", "name"},
                     {"status", "containerStatuses", "state", "terminated"},
                     {"status", "initContainerStatuses", "name"},
                     {"status", "initContainerStatuses", "restartCount"},
                     {"status", "initContainerStatuses", "state", "terminated"}};
    all.Add(PodFactFields());
    return all;
  }();
  return fields;
}

bool IsTracked(const json::Value& pod) {
  const json::Array& finalizers = pod["metadata"]["finalizers"].items();
  return std::any_of(finalizers.begin(), finalizers.end(), [](const json::Value& finalizer) {
    return finalizer.AsString() == kTrackingFinalizer;
  });
}

bool IsTerminating(const json::Value& pod) {
  return IsDeleting(pod) && !schema::IsFinalPhase(pod["status"]["phase"].AsString());
}

bool HasSucceeded(const json::Value& pod) {
  return pod["status"]["phase"].AsString() == "Succeeded";
}

bool HasFailed(const json::Value& pod, const JobSpec& spec) {
  if (pod["status"]["phase"].AsString() == "Failed") return true;
  return !spec.replaces_only_failed && IsTerminating(pod);
}

std::optional<int64_t> CompletionIndexOf(const json::Value& pod) {
  const std::optional<int64_t> index =
      ParseInt(pod["metadata"]["annotations"][kCompletionIndex].AsString());
  return index.has_value() && *index >= 0 ? index : std::nullopt;
}

Time FinishedAt(const json::Value& pod) {
  if (const std::optional<Time> end = LastEnd(pod)) return *end;
  const json::Value& ready = schema::FindCondition(pod["status"]["conditions"], "Ready");
  if (ready["status"].AsString() == "False") {
    if (const auto since = ParseTime(ready["lastTransitionTime"].AsString())) return *since;
  }
  const json::Value& metadata = pod["metadata"];
  if (const auto deletion = ParseTime(metadata["deletionTimestamp"].AsString()))
    return *deletion - BoundedSeconds(metadata["deletionGracePeriodSeconds"].AsInt());
  return ParseTime(metadata["creationTimestamp"].AsString()).value_or(Time{});
}

IndexFailures IndexFailuresOf(const json::Value& pod) {
  return {CountAnnotation(pod, kFailureCount), CountAnnotation(pod, kIgnoredCount)};
}

void StopTracking(const json::Value& pod, client::Reconciled& out) {
  const json::Value& metadata = pod["metadata"];
  json::Array finalizers;
  for (const json::Value& finalizer : metadata["finalizers"].items()) {
    if (finalizer.AsString() != kTrackingFinalizer) finalizers.push_back(finalizer);
  }
  const client::ObjectKey key = client::KeyOf(pod);
  // The uid and the resourceVersion make the server refuse it if the pod is another one by now.
  out.PatchMerge(
      {client::resources::kPods, key.ns, key.name, ""},
      json::Obj({{"metadata", json::Obj({{"uid", metadata["uid"]},
                                         {"resourceVersion", metadata["resourceVersion"]},
                                         {"finalizers", json::Value(std::move(finalizers))}})}}));
}

std::string IndexedNameBase(std::string_view job_name, int64_t index) {
  const std::string end = fmt::format("-{}", index);
  return fmt::format("{}{}", job_name.substr(0, kMaxNamePrefix - 1 - end.size()), end);
}

json::Value NewJobPod(const json::Value& job, std::optional<int64_t> index,
                      std::optional<IndexFailures> failures, std::string name) {
  json::Value pod = PodFromTemplate(job, job["spec"]["template"], std::move(name));
  if (!IsTracked(pod)) {
    json::Value finalizers = pod["metadata"]["finalizers"].Append(kTrackingFinalizer);
    pod = std::move(pod).SetPath({"metadata", "finalizers"}, std::move(finalizers));
  }
  if (!index.has_value()) return pod;
  pod = WithIndex(std::move(pod), job["metadata"]["name"].AsString(), *index);
  if (!failures.has_value()) return pod;
  pod = std::move(pod).SetPath({"metadata", "annotations", kFailureCount},
                               fmt::format("{}", failures->counted));
  if (failures->ignored > 0) {
    pod = std::move(pod).SetPath({"metadata", "annotations", kIgnoredCount},
                                 fmt::format("{}", failures->ignored));
  }
  return pod;
}

}  // namespace muster::controllers
