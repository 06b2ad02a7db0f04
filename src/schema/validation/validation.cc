#include "schema/validation.h"

#include "base/check.h"
#include "base/strings.h"
#include "schema/crd.h"
#include "schema/validation/kind_validation.h"

namespace muster::schema {
namespace {

using Rule = void (*)(const json::Value& object, FieldErrors& errors);
using UpdateRule = void (*)(const json::Value& before, const json::Value& after,
                            FieldErrors& errors);

struct KindRules {
  std::string_view group, kind;
  NameCheck name;
  Rule validate;
  UpdateRule update = nullptr;
  UpdateRule status_update = nullptr;
  Rule create = nullptr;  // what only a new object must satisfy
};

constexpr KindRules kRules[] = {
    {"", "Pod", CheckDns1123Subdomain, ValidatePod, ValidatePodUpdate, ValidatePodStatusUpdate,
     ValidatePodCreate},
    {"", "Service", CheckDns1035Label, ValidateService, ValidateServiceUpdate,
     ValidateServiceStatusUpdate},
    {"", "ConfigMap", CheckDns1123Subdomain, ValidateConfigMap, ValidateConfigMapUpdate},
    {"", "Secret", CheckDns1123Subdomain, ValidateSecret, ValidateSecretUpdate},
    {"", "ServiceAccount", CheckDns1123Subdomain, nullptr},
    {"", "PersistentVolumeClaim", CheckDns1123Subdomain, ValidatePersistentVolumeClaim,
     ValidatePersistentVolumeClaimUpdate, ValidateClaimStatusUpdate},
    {"", "Namespace", CheckDns1123Label, ValidateNamespace, nullptr, ValidateNamespaceStatusUpdate},
    {"", "Node", CheckDns1123Subdomain, ValidateNode, ValidateNodeUpdate, ValidateNodeStatusUpdate},
    {"", "Event", CheckDns1123Subdomain, ValidateEvent},
    {"scheduling.k8s.io", "PriorityClass", CheckDns1123Subdomain, ValidatePriorityClass,
     ValidatePriorityClassUpdate},
    {"coordination.k8s.io", "Lease", CheckDns1123Subdomain, ValidateLease},
    {"discovery.k8s.io", "EndpointSlice", CheckDns1123Subdomain, ValidateEndpointSlice,
     ValidateEndpointSliceUpdate},
    {"apiextensions.k8s.io", "CustomResourceDefinition", CheckDns1123Subdomain,
     ValidateCustomResourceDefinition, ValidateCustomResourceDefinitionUpdate},
    {"kubeflow.org", "PyTorchJob", CheckDns1035Label, ValidatePyTorchJob,
     ValidateTrainingJobUpdate},
    {"kubeflow.org", "TFJob", CheckDns1035Label, ValidateTFJob, ValidateTrainingJobUpdate},
    {"kubeflow.org", "JAXJob", CheckDns1035Label, ValidateJAXJob, ValidateTrainingJobUpdate},
    {"kubeflow.org", "MPIJob", CheckDns1035Label, ValidateMPIJob, ValidateMPIJobUpdate},
    {"ml.example.com", "DistributedTraining", CheckDns1035Label, ValidateDistributedTraining,
     ValidateDistributedTrainingUpdate},
    {"kueue.x-k8s.io", "ResourceFlavor", CheckDns1123Subdomain, ValidateResourceFlavor},
    {"kueue.x-k8s.io", "ClusterQueue", CheckDns1123Subdomain, ValidateClusterQueue},
    {"kueue.x-k8s.io", "LocalQueue", CheckDns1123Subdomain, ValidateLocalQueue,
     ValidateLocalQueueUpdate},
    {"kueue.x-k8s.io", "Workload", CheckDns1123Subdomain, ValidateWorkload, ValidateWorkloadUpdate},
    {"kueue.x-k8s.io", "WorkloadPriorityClass", CheckDns1123Subdomain, nullptr},
    {"ray.io", "RayCluster", CheckDns1035Label, ValidateRayCluster, ValidateRayUpdate},
    {"ray.io", "RayJob", CheckDns1035Label, ValidateRayJob, ValidateRayUpdate},
    {"ray.io", "RayService", CheckDns1035Label, ValidateRayService, ValidateRayUpdate},
    {"registry.muster.dev", "RegisteredModel", CheckDns1123Subdomain, ValidateRegisteredModel},
    {"registry.muster.dev", "ModelVersion", CheckDns1123Subdomain, ValidateModelVersion,
     ValidateModelVersionUpdate},
    {"registry.muster.dev", "Experiment", CheckDns1123Subdomain, ValidateExperiment},
    {"registry.muster.dev", "Run", CheckDns1123Subdomain, ValidateRun},
    {"scheduling.volcano.sh", "PodGroup", CheckDns1123Subdomain, ValidatePodGroup},
    {"scheduling.x-k8s.io", "PodGroup", CheckDns1123Subdomain, ValidatePodGroup},
    {"serving.kserve.io", "InferenceService", CheckDns1035Label, ValidateInferenceService},
    {"serving.kserve.io", "ServingRuntime", CheckDns1123Subdomain, ValidateServingRuntime},
    {"serving.kserve.io", "ClusterServingRuntime", CheckDns1123Subdomain, ValidateServingRuntime},
    {"serving.kserve.io", "InferenceGraph", CheckDns1035Label, ValidateInferenceGraph},
    {"", "Binding", CheckDns1123Subdomain, nullptr},
    {"apps", "Deployment", CheckDns1123Subdomain, ValidateDeployment, ValidateSelectorUpdate,
     ValidateDeploymentStatusUpdate},
    {"apps", "ReplicaSet", CheckDns1123Subdomain, ValidateReplicaSet, ValidateSelectorUpdate,
     ValidateReplicaSetStatusUpdate},
    {"apps", "StatefulSet", CheckDns1123Label, ValidateStatefulSet, ValidateStatefulSetUpdate,
     ValidateStatefulSetStatusUpdate},
    {"apps", "DaemonSet", CheckDns1123Subdomain, ValidateDaemonSet, ValidateSelectorUpdate,
     ValidateDaemonSetStatusUpdate},
    {"apps", "ControllerRevision", CheckDns1123Subdomain, ValidateControllerRevision,
     ValidateControllerRevisionUpdate},
    {"batch", "Job", CheckDns1123Subdomain, ValidateJob, ValidateJobUpdate,
     ValidateJobStatusUpdate},
    {"batch", "CronJob", CheckDns1123Subdomain, ValidateCronJob, nullptr, nullptr,
     ValidateCronJobCreate},
    {"jobset.x-k8s.io", "JobSet", CheckDns1123Subdomain, ValidateJobSet, ValidateJobSetUpdate,
     nullptr, ValidateJobSetCreate},
    {"karpenter.sh", "NodePool", CheckDns1123Subdomain, ValidateNodePool},
    {"karpenter.sh", "NodeClaim", CheckDns1123Subdomain, ValidateNodeClaim},
    {"policy", "PodDisruptionBudget", CheckPathSegment, ValidatePodDisruptionBudget, nullptr,
     ValidatePodDisruptionBudgetStatusUpdate},
    {"", "PersistentVolume", CheckDns1123Subdomain, ValidatePersistentVolume,
     ValidatePersistentVolumeUpdate},
    {"storage.k8s.io", "StorageClass", CheckDns1123Subdomain, ValidateStorageClass,
     ValidateStorageClassUpdate},
    {"storage.k8s.io", "VolumeAttributesClass", CheckDns1123Subdomain,
     ValidateVolumeAttributesClass, ValidateVolumeAttributesClassUpdate},
    {"storage.k8s.io", "CSIDriver", CheckDns1123Subdomain, ValidateCsiDriver,
     ValidateCsiDriverUpdate},
    {"storage.k8s.io", "CSINode", CheckDns1123Subdomain, ValidateCsiNode, ValidateCsiNodeUpdate},
    {"storage.k8s.io", "CSIStorageCapacity", CheckDns1123Subdomain, ValidateCsiStorageCapacity,
     ValidateCsiStorageCapacityUpdate},
    {"storage.k8s.io", "VolumeAttachment", CheckDns1123Subdomain, ValidateVolumeAttachment,
     ValidateVolumeAttachmentUpdate, ValidateVolumeAttachmentStatusUpdate,
     ValidateVolumeAttachmentCreate},
    {"", "ResourceQuota", CheckDns1123Subdomain, ValidateResourceQuota, ValidateResourceQuotaUpdate,
     ValidateResourceQuotaStatusUpdate},
    {"", "LimitRange", CheckDns1123Subdomain, ValidateLimitRange},
    {"", "Endpoints", CheckDns1123Subdomain, ValidateEndpoints},
    {"autoscaling", "HorizontalPodAutoscaler", CheckDns1123Subdomain,
     ValidateHorizontalPodAutoscaler, nullptr, ValidateHorizontalPodAutoscalerStatusUpdate},
    {"rbac.authorization.k8s.io", "Role", CheckPathSegment, ValidateRole},
    {"rbac.authorization.k8s.io", "ClusterRole", CheckPathSegment, ValidateClusterRole},
    {"rbac.authorization.k8s.io", "RoleBinding", CheckPathSegment, ValidateRoleBinding,
     ValidateRoleBindingUpdate},
    {"rbac.authorization.k8s.io", "ClusterRoleBinding", CheckPathSegment,
     ValidateClusterRoleBinding, ValidateRoleBindingUpdate},
    {"networking.k8s.io", "Ingress", CheckDns1123Subdomain, ValidateIngress, nullptr,
     ValidateIngressStatusUpdate, ValidateIngressCreate},
    {"networking.k8s.io", "IngressClass", CheckDns1123Subdomain, ValidateIngressClass,
     ValidateIngressClassUpdate},
    {"apiregistration.k8s.io", "APIService", CheckPathSegment, ValidateApiService},
    {"admissionregistration.k8s.io", "MutatingWebhookConfiguration", CheckDns1123Subdomain,
     ValidateMutatingWebhookConfiguration},
    {"admissionregistration.k8s.io", "ValidatingWebhookConfiguration", CheckDns1123Subdomain,
     ValidateValidatingWebhookConfiguration},
    {"networking.k8s.io", "NetworkPolicy", CheckDns1123Subdomain, ValidateNetworkPolicy},
};

const KindRules* RulesOf(const Kind& kind) {
  for (const KindRules& rules : kRules) {
    if (rules.kind == kind.kind && rules.group == kind.group) return &rules;
  }
  return nullptr;
}

// Custom resources: the schema first, and only what fits it is looked at by the rules of the kind.
bool CheckSchema(const Kind& kind, const json::Value& object, std::vector<StatusCause>& causes) {
  if (kind.custom) causes = ValidateStructural(*kind.schema, object);
  return causes.empty();
}

std::vector<StatusCause> ValidateWith(const Kind& kind, const json::Value& object,
                                      FieldErrors& errors) {
  std::vector<StatusCause> causes;
  if (!CheckSchema(kind, object, causes)) return causes;
  const KindRules* rules = RulesOf(kind);
  MetadataRules metadata;
  metadata.namespaced = kind.namespaced;
  // Definitions of kinds carry a finalizer of their own server, whose name has no domain before a
  // slash.
  metadata.standard_finalizers = !kind.custom && kind.group != "apiextensions.k8s.io";
  if (rules != nullptr) metadata.name = rules->name;
  ValidateMetadata(metadata, object["metadata"], errors);
  if (rules != nullptr && rules->validate != nullptr) rules->validate(object, errors);
  return {};
}

}  // namespace

std::vector<StatusCause> Validate(const Kind& kind, const json::Value& object) {
  FieldErrors errors;
  std::vector<StatusCause> causes = ValidateWith(kind, object, errors);
  if (!causes.empty()) return causes;
  const KindRules* rules = RulesOf(kind);
  if (rules != nullptr && rules->create != nullptr) rules->create(object, errors);
  return errors.Take();
}

std::vector<StatusCause> ValidateUpdate(const Kind& kind, const json::Value& before,
                                        const json::Value& after) {
  FieldErrors errors;
  ValidateMetadataUpdate(before["metadata"], after["metadata"], errors);
  std::vector<StatusCause> causes = ValidateWith(kind, after, errors);
  if (!causes.empty()) return causes;
  const KindRules* rules = RulesOf(kind);
  if (rules != nullptr && rules->update != nullptr) rules->update(before, after, errors);
  return errors.Take();
}

std::vector<StatusCause> ValidateStatusUpdate(const Kind& kind, const json::Value& before,
                                              const json::Value& after) {
  std::vector<StatusCause> causes;
  if (!CheckSchema(kind, after, causes)) return causes;
  FieldErrors errors;
  ValidateMetadataUpdate(before["metadata"], after["metadata"], errors);
  const KindRules* rules = RulesOf(kind);
  if (rules != nullptr && rules->status_update != nullptr)
    rules->status_update(before, after, errors);
  return errors.Take();
}

Status InvalidError(const Kind& kind, std::string_view name, std::vector<StatusCause> causes) {
  CHECK(!causes.empty());
  std::vector<std::string> texts;
  for (const StatusCause& cause : causes) {
    texts.push_back(cause.field.empty() ? cause.message
                                        : fmt::format("{}: {}", cause.field, cause.message));
  }
  std::string list = Join(texts, ", ");
  if (texts.size() > 1) list = "[" + list + "]";
  const std::string qualified = kind.group.empty() ? kind.kind : kind.kind + "." + kind.group;
  StatusDetails details;
  details.name = std::string(name);
  details.group = kind.group;
  details.kind = kind.kind;
  details.causes = std::move(causes);
  return Status(Reason::kInvalid,
                fmt::format("{} {} is invalid: {}", qualified, GoQuote(name), list),
                std::move(details));
}

}  // namespace muster::schema
