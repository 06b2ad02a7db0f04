// Training jobs and PodGroups. Rules: training-operator pkg/webhooks, and what the pods of a job
// must satisfy later anyway.

#include <algorithm>
#include <set>
#include <string_view>

#include "base/strings.h"
#include "schema/defaulting.h"
#include "schema/training_kinds.h"
#include "schema/validation/kind_validation.h"

namespace muster::schema {
namespace {

using json::Value;

void ValidateTemplate(std::string_view container, const Value& replica, const Path& path,
                      FieldErrors& errors) {
  const Path template_path = path.Child("template");
  const Path spec_path = template_path.Child("spec");
  const Value& spec = replica["template"]["spec"];
  const Path containers = spec_path.Child("containers");
  const auto& items = spec["containers"].items();
  if (items.empty()) return errors.Required(containers, "must be specified");
  const bool named =
      container.empty() || std::any_of(items.begin(), items.end(), [container](const Value& c) {
        return c["name"].AsString() == container;
      });
  if (!named)
    errors.Required(containers,
                    fmt::format("must have at least one container with name {}", container));
  ValidatePodSpec(DefaultPodSpec(spec), spec_path, errors);
}

void ValidateReplicas(const TrainingKind& kind, const Value& spec, const Path& path,
                      FieldErrors& errors) {
  const Path list = path.Child(kind.specs);
  if (spec[kind.specs].empty()) errors.Required(list, "must be specified");
  std::vector<std::string_view> types;
  for (const TrainingRole& role : kind.roles) types.push_back(role.type);
  size_t leaders = 0;
  for (const auto& [type, replica] : spec[kind.specs].members()) {
    const Path place = list.Key(type);
    const TrainingRole* role = kind.FindRole(type);
    if (role == nullptr || role->type != type) {
      errors.NotSupported(place, type, types);
      continue;
    }
    const Value& replicas = replica["replicas"];
    if (role->single && !replicas.IsNull() && replicas.AsInt() != 1) {
      errors.Forbidden(place.Child("replicas"), "must be 1");
    }
    if (role->leads && ++leaders > 1)
      errors.Forbidden(place, "must not be used with another role that leads the job");
    errors.NotNegative(place.Child("replicas"), replicas);
    // The one that an MPIJob names; otherwise the first will do.
    const std::string_view container =
        kind.any_container ? spec["mainContainer"].AsString() : kind.container;
    ValidateTemplate(container, replica, place, errors);
  }
  for (const TrainingRole& role : kind.roles) {
    if (role.required && !spec[kind.specs].empty() && !spec[kind.specs].Has(role.type))
      errors.Required(list.Key(role.type), "must be specified");
  }
}

// The pods and services of a job carry its name; a service whose name is no DNS label would be
// refused later, and the ranks would look for each other in vain.
void ValidateNameLength(const TrainingKind& kind, const Value& job, FieldErrors& errors) {
  const Value& name = job["metadata"]["name"];
  const Value& spec = job["spec"];
  std::string longest;
  size_t most = kMaxDnsLabelLength;
  for (const auto& [role, replica] : spec[kind.specs].members()) {
    if (kind.FindRole(role) == nullptr) continue;
    int64_t count = replica["replicas"].AsInt(1);
    if (role == "Worker") count = std::max(count, spec["elasticPolicy"]["maxReplicas"].AsInt(0));
    const std::string type = ToLower(role);
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

void ValidateRunPolicy(const Value& policy, const Path& path, FieldErrors& errors,
                       std::string_view us = "kubeflow.org/training-operator") {
  for (const char* key : {"ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit"}) {
    errors.NotNegative(path.Child(key), policy[key]);
  }
  const Value& manager = policy["managedBy"];
  if (!manager.IsNull()) {
    errors.OneOf(path.Child("managedBy"), manager, {us, "kueue.x-k8s.io/multikueue"});
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

void ValidateTrainingJob(const TrainingKind& kind, const Value& job, FieldErrors& errors) {
  const Path path("spec");
  const bool over_ssh = !job["spec"]["mpiImplementation"].AsString().empty();
  ValidateRunPolicy(job["spec"]["runPolicy"], path.Child("runPolicy"), errors,
                    over_ssh ? "kubeflow.org/mpi-operator" : "kubeflow.org/training-operator");
  ValidateNameLength(kind, job, errors);
  ValidateReplicas(kind, job["spec"], path, errors);
}

}  // namespace

void ValidatePyTorchJob(const Value& job, FieldErrors& errors) {
  const TrainingKind& kind = *FindTrainingKind("PyTorchJob");
  const Value& spec = job["spec"];
  const Path path("spec");
  ValidateRunPolicy(spec["runPolicy"], path.Child("runPolicy"), errors);
  const Value& nproc = spec["nprocPerNode"];
  if (!nproc.IsNull() && !IsNprocPerNode(nproc.AsString())) {
    errors.Invalid(path.Child("nprocPerNode"), nproc,
                   "must be auto, cpu, gpu, or a number greater than 0");
  }
  ValidateElastic(spec, path, errors);
  ValidateNameLength(kind, job, errors);
  ValidateReplicas(kind, spec, path, errors);
}

void ValidateTFJob(const Value& job, FieldErrors& errors) {
  ValidateTrainingJob(*FindTrainingKind("TFJob"), job, errors);
}

void ValidateMPIJob(const Value& job, FieldErrors& errors) {
  const Value& slots = job["spec"]["slotsPerWorker"];
  if (!slots.IsNull() && slots.AsInt() < 1) {
    errors.Invalid(Path("spec").Child("slotsPerWorker"), slots,
                   "must be greater than or equal to 1");
  }
  ValidateTrainingJob(*FindTrainingKind("MPIJob"), job, errors);
}

void ValidateJAXJob(const Value& job, FieldErrors& errors) {
  ValidateTrainingJob(*FindTrainingKind("JAXJob"), job, errors);
}

void ValidateTrainingJobUpdate(const Value& before, const Value& after, FieldErrors& errors) {
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

// Each of the two versions would be run in its own way, and a job is run in one.
void ValidateMPIJobUpdate(const Value& before, const Value& after, FieldErrors& errors) {
  const Value& old = before["spec"]["mpiImplementation"];
  const Value& now = after["spec"]["mpiImplementation"];
  if (!(old == now)) {
    errors.Invalid(Path("spec").Child("mpiImplementation"), now,
                   old.IsNull() ? "must not be set: the job was made as kubeflow.org/v1, change it "
                                  "through that version"
                                : kImmutable);
  }
  ValidateTrainingJobUpdate(before, after, errors);
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
