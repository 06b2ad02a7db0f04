// PyTorchJob and PodGroup. Rules: training-operator pkg/webhooks/pytorch, and what its pods must
// satisfy later anyway.

#include <algorithm>
#include <set>
#include <string_view>

#include "base/strings.h"
#include "schema/defaulting.h"
#include "schema/validation/kind_validation.h"

namespace muster::schema {
namespace {

using json::Value;

constexpr std::string_view kContainerName = "pytorch";

void ValidateTemplate(const Value& replica, const Path& path, FieldErrors& errors) {
  const Path template_path = path.Child("template");
  const Path spec_path = template_path.Child("spec");
  const Value& spec = replica["template"]["spec"];
  const Path containers = spec_path.Child("containers");
  const auto& items = spec["containers"].items();
  if (items.empty()) return errors.Required(containers, "must be specified");
  const bool named = std::any_of(items.begin(), items.end(), [](const Value& c) {
    return c["name"].AsString() == kContainerName;
  });
  if (!named)
    errors.Required(containers,
                    fmt::format("must have at least one container with name {}", kContainerName));
  ValidatePodSpec(DefaultPodSpec(spec), spec_path, errors);
}

void ValidateReplicas(const Value& spec, const Path& path, FieldErrors& errors) {
  const Path list = path.Child("pytorchReplicaSpecs");
  if (spec["pytorchReplicaSpecs"].empty()) errors.Required(list, "must be specified");
  for (const auto& [role, replica] : spec["pytorchReplicaSpecs"].members()) {
    const Path place = list.Key(role);
    if (role != "Master" && role != "Worker") {
      errors.NotSupported(place, role, {"Master", "Worker"});
      continue;
    }
    const Value& replicas = replica["replicas"];
    if (role == "Master" && !replicas.IsNull() && replicas.AsInt() != 1) {
      errors.Forbidden(place.Child("replicas"), "must be 1");
    }
    errors.NotNegative(place.Child("replicas"), replicas);
    ValidateTemplate(replica, place, errors);
  }
}

// The pods and services of a job carry its name; a service whose name is no DNS label would be
// refused later, and the ranks would look for each other in vain.
void ValidateNameLength(const Value& job, FieldErrors& errors) {
  const Value& name = job["metadata"]["name"];
  const Value& spec = job["spec"];
  std::string_view longest;
  size_t most = kMaxDnsLabelLength;
  for (const auto& [role, replica] : spec["pytorchReplicaSpecs"].members()) {
    if (role != "Master" && role != "Worker") continue;
    int64_t count = replica["replicas"].AsInt(1);
    if (role == "Worker") count = std::max(count, spec["elasticPolicy"]["maxReplicas"].AsInt(0));
    const std::string_view type = role == "Master" ? "master" : "worker";
    const size_t suffix = fmt::format("-{}-{}", type, std::max<int64_t>(count, 1) - 1).size();
    if (kMaxDnsLabelLength - suffix >= most) continue;
    most = kMaxDnsLabelLength - suffix;
    longest = type;
  }
  if (longest.empty() || name.AsString().size() <= most) return;
  errors.Invalid(Path("metadata").Child("name"), name,
                 fmt::format("must be no more than {} characters, because its pods and services "
                             "are called <name>-{}-<index> (at most {})",
                             most, longest, kMaxDnsLabelLength));
}

void ValidateRunPolicy(const Value& policy, const Path& path, FieldErrors& errors) {
  for (const char* key : {"ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit"}) {
    errors.NotNegative(path.Child(key), policy[key]);
  }
  const Value& manager = policy["managedBy"];
  if (!manager.IsNull()) {
    errors.OneOf(path.Child("managedBy"), manager,
                 {"kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue"});
  }
  const Path scheduling = path.Child("schedulingPolicy");
  errors.NotNegative(scheduling.Child("minAvailable"), policy["schedulingPolicy"]["minAvailable"]);
}

bool IsNprocPerNode(std::string_view text) {
  if (text == "auto" || text == "gpu" || text == "cpu" || text == "xpu") return true;
  const std::optional<int64_t> number = ParseInt(text);
  return number && *number > 0;
}

void ValidateElastic(const Value& spec, const Path& path, FieldErrors& errors) {
  const Value& elastic = spec["elasticPolicy"];
  if (elastic.IsNull()) return;
  const Path place = path.Child("elasticPolicy");
  for (const char* key : {"minReplicas", "maxReplicas", "maxRestarts", "nProcPerNode"})
    errors.NotNegative(place.Child(key), elastic[key]);
  const Value& least = elastic["minReplicas"];
  const Value& most = elastic["maxReplicas"];
  if (!least.IsNull() && !most.IsNull() && least.AsInt() > most.AsInt()) {
    errors.Invalid(place.Child("minReplicas"), least,
                   fmt::format("must be less than or equal to maxReplicas ({})", most.AsInt()));
  }
  if (!elastic["rdzvPort"].IsNull()) errors.Port(place.Child("rdzvPort"), elastic["rdzvPort"]);
  if (!elastic["nProcPerNode"].IsNull() && spec["nprocPerNode"].AsString() != "auto" &&
      !spec["nprocPerNode"].IsNull()) {
    errors.Forbidden(place.Child("nProcPerNode"),
                     "must not be used with spec.nprocPerNode; set only spec.nprocPerNode");
  }
}

// Nothing of it is acted on yet, but what could never be is refused now.
void ValidateSubGroupPolicies(const Value& spec, const Path& path, FieldErrors& errors) {
  const Path list = path.Child("subGroupPolicy");
  const Value& policies = spec["subGroupPolicy"];
  if (policies.size() > kMaxSubGroupPolicies)
    return errors.TooMany(list, policies.size(), kMaxSubGroupPolicies);
  std::set<std::string_view> names;
  int64_t pods = 0;
  for (size_t i = 0; i < policies.size(); ++i) {
    const Value& policy = policies.At(i);
    const Path place = list.Index(i);
    if (policy["name"].AsString().empty()) {
      errors.Required(place.Child("name"));
    } else if (!names.insert(policy["name"].AsString()).second) {
      errors.Duplicate(place.Child("name"), policy["name"]);
    }
    const Value& size = policy["subGroupSize"];
    const bool has_size = size.IsNull() || size.AsInt() >= 1;
    if (!has_size)
      errors.Invalid(place.Child("subGroupSize"), size, "must be greater than or equal to 1");
    const Value& wanted = policy["minSubGroups"];
    if (errors.NotNegative(place.Child("minSubGroups"), wanted) && has_size)
      pods += size.AsInt(1) * wanted.AsInt(0);
    ValidateLabelSelector(policy["labelSelector"], place.Child("labelSelector"), errors);
    const Value& keys = policy["matchLabelKeys"];
    for (size_t key = 0; key < keys.size(); ++key)
      errors.Check(CheckQualifiedName, place.Child("matchLabelKeys").Index(key), keys.At(key));
  }
  if (pods > std::max<int64_t>(spec["minMember"].AsInt(0), 0)) {
    errors.Invalid(path.Child("minMember"), spec["minMember"],
                   fmt::format("must be at least {}: so many pods are in the sub-groups that "
                               "subGroupPolicy asks for (minSubGroups x subGroupSize)",
                               pods));
  }
}

}  // namespace

void ValidatePyTorchJob(const Value& job, FieldErrors& errors) {
  const Value& spec = job["spec"];
  const Path path("spec");
  ValidateRunPolicy(spec["runPolicy"], path.Child("runPolicy"), errors);
  const Value& nproc = spec["nprocPerNode"];
  if (!nproc.IsNull() && !IsNprocPerNode(nproc.AsString())) {
    errors.Invalid(path.Child("nprocPerNode"), nproc,
                   "must be auto, cpu, gpu, or a number greater than 0");
  }
  ValidateElastic(spec, path, errors);
  ValidateNameLength(job, errors);
  ValidateReplicas(spec, path, errors);
}

void ValidatePyTorchJobUpdate(const Value& before, const Value& after, FieldErrors& errors) {
  const Path spec("spec");
  const Path policy = spec.Child("runPolicy");
  const Value& old = before["spec"]["runPolicy"];
  const Value& now = after["spec"]["runPolicy"];
  if (!(old["managedBy"] == now["managedBy"]))
    errors.Invalid(policy.Child("managedBy"), now["managedBy"], kImmutable);
  if (!(old["schedulingPolicy"]["queue"] == now["schedulingPolicy"]["queue"])) {
    const Path scheduling = policy.Child("schedulingPolicy");
    errors.Invalid(scheduling.Child("queue"), now["schedulingPolicy"]["queue"], kImmutable);
  }
}

void ValidatePodGroup(const Value& group, FieldErrors& errors) {
  const Path spec("spec");
  errors.NotNegative(spec.Child("minMember"), group["spec"]["minMember"]);
  const Value& tasks = group["spec"]["minTaskMember"];
  for (const json::Member& task : tasks.members())
    errors.NotNegative(spec.Child("minTaskMember").Key(task.first), task.second);
  errors.NotNegative(spec.Child("scheduleTimeoutSeconds"), group["spec"]["scheduleTimeoutSeconds"]);
  ValidateSubGroupPolicies(group["spec"], spec, errors);
}

}  // namespace muster::schema
