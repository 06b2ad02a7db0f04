// RayCluster, RayJob and RayService. Rules: kuberay controllers/ray/utils/validation.go and its
// CRDs, and what their pods must satisfy later anyway.

#include <initializer_list>
#include <set>
#include <string>
#include <string_view>

#include "base/strings.h"
#include "json/parse.h"
#include "schema/defaulting.h"
#include "schema/validation/kind_validation.h"

namespace muster::schema {
namespace {

using json::Value;

// Names of pods and Services are made of it.
constexpr size_t kMaxClusterName = 53;
constexpr size_t kMaxOwnerName = 47;  // of a RayJob or RayService, of which clusters are named

void ValidateName(const Value& object, size_t most, FieldErrors& errors) {
  const Value& name = object["metadata"]["name"];
  if (name.AsString().size() > most) {
    errors.Invalid(Path("metadata").Child("name"), name,
                   fmt::format("must be no more than {} characters", most));
  }
}

void ValidateManager(const Value& spec, FieldErrors& errors) {
  const Value& manager = spec["managedBy"];
  if (manager.IsNull()) return;
  errors.OneOf(Path("spec").Child("managedBy"), manager,
               {"ray.io/kuberay-operator", "kueue.x-k8s.io/multikueue"});
}

void ValidateManagerUpdate(const Value& before, const Value& after, FieldErrors& errors) {
  if (before["spec"]["managedBy"] == after["spec"]["managedBy"]) return;
  errors.Invalid(Path("spec").Child("managedBy"), after["spec"]["managedBy"], kImmutable);
}

void ValidateTemplate(const Value& group, const Path& path, FieldErrors& errors) {
  const Path template_path = path.Child("template");
  const Path spec_path = template_path.Child("spec");
  const Value& spec = group["template"]["spec"];
  if (spec["containers"].empty())
    return errors.Required(spec_path.Child("containers"), "the first one runs Ray");
  ValidatePodSpec(DefaultPodSpec(spec), spec_path, errors);
}

void RefuseFlags(const Value& group, std::initializer_list<const char*> names,
                 std::string_view instead, const Path& path, FieldErrors& errors) {
  for (const char* name : names) {
    if (!group["rayStartParams"][name].AsString().empty())
      errors.Forbidden(path.Child("rayStartParams").Key(name), instead);
  }
}

// What the flags of `ray start` must not say, because another field does. All others are Ray's own
// matter: what it does not know ends its container.
void ValidateStartParams(const Value& group, const Path& path, FieldErrors& errors) {
  if (group["rayStartParams"].Has("labels")) {
    errors.Forbidden(path.Child("rayStartParams").Key("labels"), "use the group's labels instead");
  }
  if (group["resources"].empty()) return;
  RefuseFlags(group, {"num-cpus", "num-gpus", "memory", "resources"},
              "must not be used with the group's resources", path, errors);
}

void ValidateHead(const Value& spec, const Path& path, FieldErrors& errors) {
  const Value& head = spec["headGroupSpec"];
  ValidateTemplate(head, path, errors);
  ValidateStartParams(head, path, errors);
  RefuseFlags(head, {"redis-username"}, "use gcsFaultToleranceOptions.redisUsername instead", path,
              errors);
  if (!spec.Has("gcsFaultToleranceOptions")) return;
  RefuseFlags(head, {"redis-password"}, "use gcsFaultToleranceOptions.redisPassword instead", path,
              errors);
}

void ValidateGroup(const Value& group, bool autoscaling, const Path& path, FieldErrors& errors) {
  errors.Check(CheckDns1123Label, path.Child("groupName"), group["groupName"]);
  for (const char* count : {"replicas", "minReplicas", "maxReplicas", "idleTimeoutSeconds"})
    errors.NotNegative(path.Child(count), group[count]);
  for (const char* count : {"replicas", "minReplicas"}) {
    if (group[count].AsInt() > kMaxRayWorkersOfGroup) {
      errors.Invalid(path.Child(count), group[count],
                     fmt::format("must be less than or equal to {}", kMaxRayWorkersOfGroup));
    }
  }
  const Value& most = group["maxReplicas"];
  if (!most.IsNull() && group["minReplicas"].AsInt() > most.AsInt())
    errors.Invalid(path.Child("minReplicas"), group["minReplicas"],
                   "must not be greater than maxReplicas");
  if (const Value& hosts = group["numOfHosts"]; !hosts.IsNull() && hosts.AsInt() != 1)
    errors.NotSupported(path.Child("numOfHosts"), hosts, {"1"});
  if (autoscaling && group["suspend"].AsBool())
    errors.Forbidden(path.Child("suspend"), "must not be used with enableInTreeAutoscaling");
  ValidateTemplate(group, path, errors);
}

void ValidateClusterSpec(const Value& spec, const Path& path, FieldErrors& errors) {
  ValidateHead(spec, path.Child("headGroupSpec"), errors);
  const Path list = path.Child("workerGroupSpecs");
  std::set<std::string_view> names;
  for (size_t i = 0; i < spec["workerGroupSpecs"].size(); ++i) {
    const Value& group = spec["workerGroupSpecs"].At(i);
    ValidateGroup(group, spec["enableInTreeAutoscaling"].AsBool(), list.Index(i), errors);
    ValidateStartParams(group, list.Index(i), errors);
    if (!names.insert(group["groupName"].AsString()).second)
      errors.Duplicate(list.Index(i).Child("groupName"), group["groupName"]);
  }
}

// YAML text that is one object.
void ValidateYamlObject(const Value& text, const Path& path, FieldErrors& errors) {
  const Result<std::vector<Value>> documents = json::ParseYaml(text.AsString());
  if (!documents) return errors.Invalid(path, documents.error().message());
  if (documents->size() != 1 || !(*documents)[0].IsObject())
    errors.Invalid(path, "must be one YAML object");
}

}  // namespace

void ValidateRayCluster(const Value& cluster, FieldErrors& errors) {
  ValidateName(cluster, kMaxClusterName, errors);
  ValidateManager(cluster["spec"], errors);
  ValidateClusterSpec(cluster["spec"], Path("spec"), errors);
}

void ValidateRayJob(const Value& job, FieldErrors& errors) {
  const Path path("spec");
  const Value& spec = job["spec"];
  ValidateName(job, kMaxOwnerName, errors);
  ValidateManager(spec, errors);
  if (spec["entrypoint"].AsString().empty() &&
      spec["submissionMode"].AsString() != "InteractiveMode")
    errors.Required(path.Child("entrypoint"));
  const bool selects = !spec["clusterSelector"].empty();
  if (selects && !spec["clusterSelector"].Has("ray.io/cluster"))
    errors.Required(path.Child("clusterSelector").Key("ray.io/cluster"), "it names the cluster");
  if (!selects && spec["rayClusterSpec"].IsNull())
    errors.Required(path.Child("rayClusterSpec"), "or clusterSelector");
  if (!spec["rayClusterSpec"].IsNull())
    ValidateClusterSpec(spec["rayClusterSpec"], path.Child("rayClusterSpec"), errors);
  // A cluster that is not the job's own is neither removed nor replaced.
  for (const char* flag : {"shutdownAfterJobFinishes", "suspend"}) {
    if (selects && spec[flag].AsBool())
      errors.Forbidden(path.Child(flag), "must not be used with clusterSelector");
  }
  if (selects && spec["backoffLimit"].AsInt() > 0)
    errors.Forbidden(path.Child("backoffLimit"), "must not be used with clusterSelector");
  for (const char* count : {"backoffLimit", "ttlSecondsAfterFinished"})
    errors.NotNegative(path.Child(count), spec[count]);
  if (spec["ttlSecondsAfterFinished"].AsInt() > 0 && !spec["shutdownAfterJobFinishes"].AsBool())
    errors.Forbidden(path.Child("ttlSecondsAfterFinished"),
                     "must not be used without shutdownAfterJobFinishes");
  for (const char* deadline : {"activeDeadlineSeconds", "preRunningDeadlineSeconds"}) {
    if (const Value& limit = spec[deadline]; !limit.IsNull() && limit.AsInt() < 1)
      errors.Invalid(path.Child(deadline), limit, "must be greater than 0");
  }
  if (!Trim(spec["runtimeEnvYAML"].AsString()).empty())
    ValidateYamlObject(spec["runtimeEnvYAML"], path.Child("runtimeEnvYAML"), errors);
  if (!spec["submitterPodTemplate"].IsNull()) {
    const Path pod_template = path.Child("submitterPodTemplate");
    const Path place = pod_template.Child("spec");
    const Value& pod = spec["submitterPodTemplate"]["spec"];
    if (pod["containers"].empty()) errors.Required(place.Child("containers"));
    if (const Value& policy = pod["restartPolicy"]; !policy.IsNull())
      errors.OneOf(place.Child("restartPolicy"), policy, {"Never", "OnFailure"});
  }
}

void ValidateRayService(const Value& service, FieldErrors& errors) {
  const Path path("spec");
  const Value& spec = service["spec"];
  ValidateName(service, kMaxOwnerName, errors);
  ValidateManager(spec, errors);
  if (spec["serveConfigV2"].AsString().empty()) {
    errors.Required(path.Child("serveConfigV2"));
  } else {
    ValidateYamlObject(spec["serveConfigV2"], path.Child("serveConfigV2"), errors);
  }
  errors.NotNegative(path.Child("rayClusterDeletionDelaySeconds"),
                     spec["rayClusterDeletionDelaySeconds"]);
  ValidateClusterSpec(spec["rayClusterConfig"], path.Child("rayClusterConfig"), errors);
}

void ValidateRayUpdate(const Value& before, const Value& after, FieldErrors& errors) {
  ValidateManagerUpdate(before, after, errors);
}

}  // namespace muster::schema
