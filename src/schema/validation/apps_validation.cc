// apps/v1: k8s.io/kubernetes pkg/apis/apps/validation, and what its strategies hold immutable.

#include "schema/validation/kind_validation.h"
#include "schema/validation/workload_parts.h"

namespace muster::schema {
namespace {

using json::Value;

void ValidateSelector(const Value& selector, const Path& path, std::string_view kind,
                      FieldErrors& errors) {
  if (selector.IsNull()) return errors.Required(path);
  ValidateLabelSelector(selector, path, errors);
  if (selector["matchLabels"].empty() && selector["matchExpressions"].empty())
    errors.Invalid(path, selector, fmt::format("empty selector is invalid for {}", kind));
}

// These pods run until somebody ends them. `path` is that of the kind's spec.
void ValidateEndless(const Value& spec, const Path& path, std::string_view kind,
                     FieldErrors& errors) {
  const Value& pod = spec["template"]["spec"];
  const Path pod_template = path.Child("template");
  const Path pod_path = pod_template.Child("spec");
  const Value& policy = pod["restartPolicy"];
  if (policy.AsString() != "Always")
    errors.NotSupported(pod_path.Child("restartPolicy"), policy, {"Always"});
  if (!pod["activeDeadlineSeconds"].IsNull()) {
    errors.Forbidden(pod_path.Child("activeDeadlineSeconds"),
                     fmt::format("activeDeadlineSeconds in {} is not Supported", kind));
  }
}

// What Deployments and ReplicaSets have in common; upstream words them alike.
void ValidateReplicated(const Value& spec, const Path& path, FieldErrors& errors) {
  ValidateNotNegative(spec, path, {"replicas", "minReadySeconds"}, errors);
  ValidateSelector(spec["selector"], path.Child("selector"), "deployment", errors);
  ValidateSelectorMatches(spec, path, errors);
  ValidatePodTemplate(spec["template"], path.Child("template"), errors);
  ValidateEndless(spec, path, "ReplicaSet", errors);
}

void ValidateDeploymentStrategy(const Value& strategy, const Path& path, FieldErrors& errors) {
  const Path pace_path = path.Child("rollingUpdate");
  const Value& pace = strategy["rollingUpdate"];
  const std::string_view type = strategy["type"].AsString();
  if (type == "Recreate") {
    if (!pace.IsNull()) {
      errors.Forbidden(pace_path, "may not be specified when strategy `type` is 'Recreate'");
    }
    return;
  }
  if (type != "RollingUpdate")
    return errors.NotSupported(path, strategy, {"Recreate", "RollingUpdate"});
  const Path unavailable = pace_path.Child("maxUnavailable");
  ValidateIntOrPercent(pace["maxUnavailable"], unavailable, errors);
  ValidateIntOrPercent(pace["maxSurge"], pace_path.Child("maxSurge"), errors);
  if (IsNone(pace["maxUnavailable"]) && IsNone(pace["maxSurge"]))
    errors.Invalid(unavailable, pace["maxUnavailable"], "may not be 0 when `maxSurge` is 0");
  ValidateAtMostAll(pace["maxUnavailable"], unavailable, errors);
}

void ValidateDaemonSetStrategy(const Value& strategy, const Path& path, FieldErrors& errors) {
  const std::string_view type = strategy["type"].AsString();
  if (type == "OnDelete") return;
  if (type != "RollingUpdate")
    return errors.NotSupported(path, strategy, {"RollingUpdate", "OnDelete"});
  const Value& pace = strategy["rollingUpdate"];
  const Path pace_path = path.Child("rollingUpdate");
  const Path unavailable = pace_path.Child("maxUnavailable");
  const Path surge = pace_path.Child("maxSurge");
  ValidateIntOrPercent(pace["maxUnavailable"], unavailable, errors);
  ValidateIntOrPercent(pace["maxSurge"], surge, errors);
  ValidateAtMostAll(pace["maxUnavailable"], unavailable, errors);
  ValidateAtMostAll(pace["maxSurge"], surge, errors);
  const bool some_unavailable = !IsNone(pace["maxUnavailable"]);
  const bool some_surge = !IsNone(pace["maxSurge"]);
  if (some_unavailable && some_surge)
    errors.Invalid(surge, pace["maxSurge"], "may not be set when maxUnavailable is non-zero");
  if (!some_unavailable && !some_surge)
    errors.Required(unavailable, "cannot be 0 when maxSurge is 0");
}

void ValidateStatefulSetStrategy(const Value& strategy, const Path& path, FieldErrors& errors) {
  const std::string_view type = strategy["type"].AsString();
  const Value& pace = strategy["rollingUpdate"];
  const Path pace_path = path.Child("rollingUpdate");
  if (type == "OnDelete") {
    if (!pace.IsNull())
      errors.Invalid(pace_path, pace, "only allowed for updateStrategy 'RollingUpdate'");
    return;
  }
  if (type != "RollingUpdate")
    return errors.Invalid(path, strategy, "must be 'RollingUpdate' or 'OnDelete'");
  ValidateNotNegative(pace, pace_path, {"partition"}, errors);
  const Value& unavailable = pace["maxUnavailable"];
  if (unavailable.IsNull()) return;
  const Path place = pace_path.Child("maxUnavailable");
  ValidateIntOrPercent(unavailable, place, errors);
  if (IsNone(unavailable)) errors.Invalid(place, unavailable, "cannot be 0");
  ValidateAtMostAll(unavailable, place, errors);
}

void ValidateCollisions(const Value& before, const Value& after, const Path& status,
                        FieldErrors& errors) {
  const Path path = status.Child("collisionCount");
  const Value& count = after["status"]["collisionCount"];
  errors.NotNegative(path, count);
  if (count.AsInt() < before["status"]["collisionCount"].AsInt())
    errors.Invalid(path, count.AsInt(), "cannot be decremented");
}

// status[key] <= status[limit]
void ValidateAtMost(const Value& status, const Path& path, std::string_view key,
                    std::string_view limit, std::string_view limit_name, FieldErrors& errors) {
  if (status[key].AsInt() > status[limit].AsInt()) {
    errors.Invalid(path.Child(key), status[key].AsInt(),
                   fmt::format("cannot be greater than {}", limit_name));
  }
}

}  // namespace

void ValidateDeployment(const Value& deployment, FieldErrors& errors) {
  const Path path("spec");
  const Value& spec = deployment["spec"];
  ValidateReplicated(spec, path, errors);
  ValidateDeploymentStrategy(spec["strategy"], path.Child("strategy"), errors);
  ValidateNotNegative(spec, path, {"revisionHistoryLimit", "progressDeadlineSeconds"}, errors);
  const Value& deadline = spec["progressDeadlineSeconds"];
  if (!deadline.IsNull() && deadline.AsInt() <= spec["minReadySeconds"].AsInt()) {
    errors.Invalid(path.Child("progressDeadlineSeconds"), deadline,
                   "must be greater than minReadySeconds");
  }
}

void ValidateSelectorUpdate(const Value& before, const Value& after, FieldErrors& errors) {
  ValidateUnchanged(before["spec"]["selector"], after["spec"]["selector"],
                    Path("spec").Child("selector"), errors);
}

void ValidateDeploymentStatusUpdate(const Value& before, const Value& after, FieldErrors& errors) {
  const Path path("status");
  const Value& status = after["status"];
  ValidateNotNegative(status, path,
                      {"observedGeneration", "replicas", "updatedReplicas", "readyReplicas",
                       "availableReplicas", "unavailableReplicas"},
                      errors);
  for (const char* key : {"updatedReplicas", "readyReplicas", "availableReplicas"})
    ValidateAtMost(status, path, key, "replicas", "status.replicas", errors);
  ValidateAtMost(status, path, "availableReplicas", "readyReplicas", "readyReplicas", errors);
  ValidateCollisions(before, after, path, errors);
}

void ValidateReplicaSet(const Value& replica_set, FieldErrors& errors) {
  ValidateReplicated(replica_set["spec"], Path("spec"), errors);
}

void ValidateReplicaSetStatusUpdate(const Value&, const Value& after, FieldErrors& errors) {
  const Path path("status");
  const Value& status = after["status"];
  ValidateNotNegative(status, path,
                      {"replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas",
                       "observedGeneration"},
                      errors);
  for (const char* key : {"fullyLabeledReplicas", "readyReplicas", "availableReplicas"})
    ValidateAtMost(status, path, key, "replicas", "status.replicas", errors);
  ValidateAtMost(status, path, "availableReplicas", "readyReplicas", "readyReplicas", errors);
}

void ValidateDaemonSet(const Value& daemon_set, FieldErrors& errors) {
  const Path path("spec");
  const Value& spec = daemon_set["spec"];
  // Upstream does not ask for a selector here, but without one nothing matches.
  if (!spec["selector"].IsNull())
    ValidateSelector(spec["selector"], path.Child("selector"), "daemonset", errors);
  ValidateSelectorMatches(spec, path, errors);
  ValidatePodTemplate(spec["template"], path.Child("template"), errors);
  ValidateEndless(spec, path, "DaemonSet", errors);
  ValidateNotNegative(spec, path, {"minReadySeconds", "revisionHistoryLimit"}, errors);
  ValidateDaemonSetStrategy(spec["updateStrategy"], path.Child("updateStrategy"), errors);
}

void ValidateDaemonSetStatusUpdate(const Value& before, const Value& after, FieldErrors& errors) {
  const Path path("status");
  ValidateNotNegative(
      after["status"], path,
      {"currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady",
       "observedGeneration", "updatedNumberScheduled", "numberAvailable", "numberUnavailable"},
      errors);
  ValidateCollisions(before, after, path, errors);
}

// Upstream looks at the labels and annotations of the template here, not at the pod itself.
void ValidateStatefulSet(const Value& stateful_set, FieldErrors& errors) {
  const Path path("spec");
  const Value& spec = stateful_set["spec"];
  const std::string_view management = spec["podManagementPolicy"].AsString();
  if (management != "OrderedReady" && management != "Parallel") {
    errors.Invalid(path.Child("podManagementPolicy"), management,
                   "must be 'OrderedReady' or 'Parallel'");
  }
  ValidateStatefulSetStrategy(spec["updateStrategy"], path.Child("updateStrategy"), errors);
  const Path retention = path.Child("persistentVolumeClaimRetentionPolicy");
  for (const char* key : {"whenDeleted", "whenScaled"}) {
    errors.OneOf(retention.Child(key), spec["persistentVolumeClaimRetentionPolicy"][key],
                 {"Retain", "Delete"});
  }
  ValidateNotNegative(spec, path, {"replicas", "minReadySeconds", "revisionHistoryLimit"}, errors);
  errors.NotNegative(path.Child("ordinals.start"), spec["ordinals"]["start"]);
  ValidateSelector(spec["selector"], path.Child("selector"), "statefulset", errors);
  ValidateSelectorMatches(spec, path, errors);
  ValidatePodTemplateMetadata(spec["template"], path.Child("template"), errors);
  ValidateEndless(spec, path, "StatefulSet", errors);
}

void ValidateStatefulSetUpdate(const Value& before, const Value& after, FieldErrors& errors) {
  const Value& old = before["spec"];
  Value now = after["spec"];
  for (const char* key : {"replicas", "ordinals", "template", "updateStrategy",
                          "persistentVolumeClaimRetentionPolicy", "minReadySeconds"}) {
    now = old.Has(key) ? std::move(now).Set(key, old[key]) : now.Remove(key);
  }
  if (now == old) return;
  errors.Forbidden(Path("spec"),
                   "updates to statefulset spec for fields other than 'replicas', 'ordinals', "
                   "'template', 'updateStrategy', 'persistentVolumeClaimRetentionPolicy' and "
                   "'minReadySeconds' are forbidden");
}

void ValidateStatefulSetStatusUpdate(const Value& before, const Value& after, FieldErrors& errors) {
  const Path path("status");
  const Value& status = after["status"];
  ValidateNotNegative(status, path,
                      {"replicas", "readyReplicas", "currentReplicas", "updatedReplicas",
                       "availableReplicas", "observedGeneration"},
                      errors);
  for (const char* key :
       {"readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"}) {
    ValidateAtMost(status, path, key, "replicas", "status.replicas", errors);
  }
  ValidateAtMost(status, path, "availableReplicas", "readyReplicas", "status.readyReplicas",
                 errors);
  ValidateCollisions(before, after, path, errors);
}

void ValidateControllerRevision(const Value& revision, FieldErrors& errors) {
  if (revision["data"].IsNull()) errors.Required(Path("data"), "data is mandatory");
  errors.NotNegative(Path("revision"), revision["revision"]);
}

void ValidateControllerRevisionUpdate(const Value& before, const Value& after,
                                      FieldErrors& errors) {
  ValidateUnchanged(before["data"], after["data"], Path("data"), errors);
}

}  // namespace muster::schema
