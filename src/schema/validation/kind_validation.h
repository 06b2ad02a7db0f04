// src/schema/validation/kind_validation.h
//
// Private to src/schema: the rules of single kinds, called through schema/validation.h.
//
// Thread: any (pure functions).

#pragma once

#include "json/value.h"
#include "schema/kind.h"
#include "schema/validation/field_errors.h"

namespace muster::schema {

struct MetadataRules {
  NameCheck name = CheckDns1123Subdomain;
  bool namespaced = true;
  // The core groups know which finalizers without a domain exist; custom resources may name any.
  bool standard_finalizers = true;
};

void ValidateMetadata(const MetadataRules& rules, const json::Value& metadata, FieldErrors& errors);
// Of the core group's objects and of namespaces' own list.
void ValidateStandardFinalizer(const json::Value& name, const Path& path, FieldErrors& errors);
void ValidateMetadataUpdate(const json::Value& before, const json::Value& after,
                            FieldErrors& errors);
void ValidateLabels(const json::Value& labels, const Path& path, FieldErrors& errors);
void ValidateAnnotations(const json::Value& annotations, const Path& path, FieldErrors& errors);
// Of nodes, or of what nodes will be made from.
void ValidateTaints(const json::Value& taints, const Path& list, FieldErrors& errors);
void ValidateLabelSelector(const json::Value& selector, const Path& path, FieldErrors& errors);

void ValidatePod(const json::Value& pod, FieldErrors& errors);
void ValidatePodCreate(const json::Value& pod, FieldErrors& errors);
void ValidatePodUpdate(const json::Value& before, const json::Value& after, FieldErrors& errors);
void ValidatePodStatusUpdate(const json::Value& before, const json::Value& after,
                             FieldErrors& errors);
// REQUIRES: a spec that DefaultPodSpec has completed.
void ValidatePodSpec(const json::Value& spec, const Path& path, FieldErrors& errors);
// Annotations that the API itself reads; `path` is theirs. Of a pod or of a template.
void ValidatePodAnnotations(const json::Value& pod, const Path& path, FieldErrors& errors);

void ValidateService(const json::Value& service, FieldErrors& errors);
void ValidateServiceUpdate(const json::Value& before, const json::Value& after,
                           FieldErrors& errors);
void ValidateServiceStatusUpdate(const json::Value& before, const json::Value& after,
                                 FieldErrors& errors);
void ValidateConfigMap(const json::Value& config_map, FieldErrors& errors);
void ValidateConfigMapUpdate(const json::Value& before, const json::Value& after,
                             FieldErrors& errors);
void ValidateSecret(const json::Value& secret, FieldErrors& errors);
void ValidateSecretUpdate(const json::Value& before, const json::Value& after, FieldErrors& errors);
void ValidatePersistentVolumeClaim(const json::Value& claim, FieldErrors& errors);
void ValidateClaimSpec(const json::Value& spec, const Path& path, FieldErrors& errors);
void ValidatePersistentVolumeClaimUpdate(const json::Value& before, const json::Value& after,
                                         FieldErrors& errors);
void ValidateClaimStatusUpdate(const json::Value& before, const json::Value& after,
                               FieldErrors& errors);
void ValidateNamespace(const json::Value& ns, FieldErrors& errors);
void ValidateNamespaceStatusUpdate(const json::Value& before, const json::Value& after,
                                   FieldErrors& errors);
void ValidateNode(const json::Value& node, FieldErrors& errors);
void ValidateNodeUpdate(const json::Value& before, const json::Value& after, FieldErrors& errors);
void ValidateNodeStatusUpdate(const json::Value& before, const json::Value& after,
                              FieldErrors& errors);
void ValidateEvent(const json::Value& event, FieldErrors& errors);
void ValidatePriorityClass(const json::Value& priority_class, FieldErrors& errors);
void ValidatePriorityClassUpdate(const json::Value& before, const json::Value& after,
                                 FieldErrors& errors);
void ValidateLease(const json::Value& lease, FieldErrors& errors);
void ValidateEndpoints(const json::Value& endpoints, FieldErrors& errors);
void ValidateEndpointSlice(const json::Value& slice, FieldErrors& errors);
void ValidateEndpointSliceUpdate(const json::Value& before, const json::Value& after,
                                 FieldErrors& errors);
// The schema of a version: structural, and nothing in it that the API server does not take.
// `pattern_size`: what all patterns of the definition so far compile to (kMaxPatternInstructions).
void ValidateRootSchema(const json::Value& schema, const Path& path, size_t& pattern_size,
                        FieldErrors& errors);
void ValidateCustomResourceDefinition(const json::Value& crd, FieldErrors& errors);
void ValidateCustomResourceDefinitionUpdate(const json::Value& before, const json::Value& after,
                                            FieldErrors& errors);
void ValidatePyTorchJob(const json::Value& job, FieldErrors& errors);
void ValidateTFJob(const json::Value& job, FieldErrors& errors);
void ValidateJAXJob(const json::Value& job, FieldErrors& errors);
void ValidateDistributedTraining(const json::Value& training, FieldErrors& errors);
void ValidateResourceFlavor(const json::Value& flavor, FieldErrors& errors);
void ValidateClusterQueue(const json::Value& queue, FieldErrors& errors);
void ValidateLocalQueue(const json::Value& queue, FieldErrors& errors);
void ValidateLocalQueueUpdate(const json::Value& before, const json::Value& after,
                              FieldErrors& errors);
void ValidateWorkload(const json::Value& workload, FieldErrors& errors);
void ValidateWorkloadUpdate(const json::Value& before, const json::Value& after,
                            FieldErrors& errors);
void ValidateDistributedTrainingUpdate(const json::Value& before, const json::Value& after,
                                       FieldErrors& errors);
void ValidateMPIJob(const json::Value& job, FieldErrors& errors);
void ValidateMPIJobUpdate(const json::Value& before, const json::Value& after, FieldErrors& errors);
void ValidateTrainingJobUpdate(const json::Value& before, const json::Value& after,
                               FieldErrors& errors);
void ValidateInferenceService(const json::Value& service, FieldErrors& errors);
// Of ServingRuntimes and ClusterServingRuntimes.
void ValidateServingRuntime(const json::Value& runtime, FieldErrors& errors);
void ValidateInferenceGraph(const json::Value& graph, FieldErrors& errors);
// Of one group of a RayCluster.
inline constexpr int64_t kMaxRayWorkersOfGroup = 10'000;
void ValidateRayCluster(const json::Value& cluster, FieldErrors& errors);
void ValidateRayJob(const json::Value& job, FieldErrors& errors);
void ValidateRayService(const json::Value& service, FieldErrors& errors);
void ValidateRayUpdate(const json::Value& before, const json::Value& after, FieldErrors& errors);
// Of the registry of models: what one object may have.
inline constexpr size_t kMaxRegistryKeyBytes = 250;
inline constexpr size_t kMaxRegistryTextBytes = 6000;
inline constexpr size_t kMaxRegistryTags = 100;
inline constexpr size_t kMaxModelAliases = 100;
inline constexpr size_t kMaxRunParams = 1000;  // trainers log every setting that they have
inline constexpr size_t kMaxRunMetrics = 1000;
inline constexpr size_t kMaxMetricDigits = 32;
void ValidateRegisteredModel(const json::Value& model, FieldErrors& errors);
void ValidateModelVersion(const json::Value& version, FieldErrors& errors);
void ValidateModelVersionUpdate(const json::Value& before, const json::Value& after,
                                FieldErrors& errors);
void ValidateExperiment(const json::Value& experiment, FieldErrors& errors);
void ValidateRun(const json::Value& run, FieldErrors& errors);
// Of one PodGroup.
inline constexpr size_t kMaxSubGroupPolicies = 32;
void ValidatePodGroup(const json::Value& group, FieldErrors& errors);

// Of Deployments, ReplicaSets and DaemonSets: spec.selector stays as it is.
void ValidateSelectorUpdate(const json::Value& before, const json::Value& after,
                            FieldErrors& errors);
void ValidateDeployment(const json::Value& deployment, FieldErrors& errors);
void ValidateDeploymentStatusUpdate(const json::Value& before, const json::Value& after,
                                    FieldErrors& errors);
void ValidateReplicaSet(const json::Value& replica_set, FieldErrors& errors);
void ValidateReplicaSetStatusUpdate(const json::Value& before, const json::Value& after,
                                    FieldErrors& errors);
void ValidateStatefulSet(const json::Value& stateful_set, FieldErrors& errors);
void ValidateStatefulSetUpdate(const json::Value& before, const json::Value& after,
                               FieldErrors& errors);
void ValidateStatefulSetStatusUpdate(const json::Value& before, const json::Value& after,
                                     FieldErrors& errors);
void ValidateDaemonSet(const json::Value& daemon_set, FieldErrors& errors);
void ValidateDaemonSetStatusUpdate(const json::Value& before, const json::Value& after,
                                   FieldErrors& errors);
void ValidateControllerRevision(const json::Value& revision, FieldErrors& errors);
void ValidateControllerRevisionUpdate(const json::Value& before, const json::Value& after,
                                      FieldErrors& errors);
void ValidateJob(const json::Value& job, FieldErrors& errors);
void ValidateJobUpdate(const json::Value& before, const json::Value& after, FieldErrors& errors);
void ValidateJobStatusUpdate(const json::Value& before, const json::Value& after,
                             FieldErrors& errors);
void ValidateCronJob(const json::Value& cron_job, FieldErrors& errors);
void ValidateCronJobCreate(const json::Value& cron_job, FieldErrors& errors);
// Of a Job to be; `spec` as DefaultJob has completed it.
void ValidateJobTemplateSpec(const json::Value& spec, const Path& path, FieldErrors& errors);
// "acme.io/foo": who looks after the object.
void ValidateManagedBy(const json::Value& manager, const Path& path, FieldErrors& errors);
void ValidateNodePool(const json::Value& pool, FieldErrors& errors);
void ValidateNodeClaim(const json::Value& claim, FieldErrors& errors);
// Of one JobSet, over all its replicatedJobs.
inline constexpr int64_t kMaxJobsOfJobSet = 10'000;
void ValidateJobSet(const json::Value& job_set, FieldErrors& errors);
void ValidateJobSetCreate(const json::Value& job_set, FieldErrors& errors);
void ValidateJobSetUpdate(const json::Value& before, const json::Value& after, FieldErrors& errors);
void ValidatePersistentVolume(const json::Value& volume, FieldErrors& errors);
void ValidatePersistentVolumeUpdate(const json::Value& before, const json::Value& after,
                                    FieldErrors& errors);
// `inlined`: inside a VolumeAttachment.
void ValidatePersistentVolumeSpec(const json::Value& spec, bool inlined, const Path& path,
                                  FieldErrors& errors);
// Of claims and volumes.
void ValidateAccessModes(const json::Value& modes, const Path& path, FieldErrors& errors);
void ValidateCsiDriverName(const json::Value& name, const Path& path, FieldErrors& errors);
void ValidateStorageClass(const json::Value& storage_class, FieldErrors& errors);
void ValidateStorageClassUpdate(const json::Value& before, const json::Value& after,
                                FieldErrors& errors);
void ValidateVolumeAttributesClass(const json::Value& attributes, FieldErrors& errors);
void ValidateVolumeAttributesClassUpdate(const json::Value& before, const json::Value& after,
                                         FieldErrors& errors);
void ValidateCsiDriver(const json::Value& driver, FieldErrors& errors);
void ValidateCsiDriverUpdate(const json::Value& before, const json::Value& after,
                             FieldErrors& errors);
void ValidateCsiNode(const json::Value& node, FieldErrors& errors);
void ValidateCsiNodeUpdate(const json::Value& before, const json::Value& after,
                           FieldErrors& errors);
void ValidateCsiStorageCapacity(const json::Value& capacity, FieldErrors& errors);
void ValidateCsiStorageCapacityUpdate(const json::Value& before, const json::Value& after,
                                      FieldErrors& errors);
void ValidateVolumeAttachment(const json::Value& attachment, FieldErrors& errors);
void ValidateVolumeAttachmentCreate(const json::Value& attachment, FieldErrors& errors);
void ValidateVolumeAttachmentUpdate(const json::Value& before, const json::Value& after,
                                    FieldErrors& errors);
void ValidateVolumeAttachmentStatusUpdate(const json::Value& before, const json::Value& after,
                                          FieldErrors& errors);
void ValidateResourceQuota(const json::Value& quota, FieldErrors& errors);
void ValidateResourceQuotaUpdate(const json::Value& before, const json::Value& after,
                                 FieldErrors& errors);
void ValidateResourceQuotaStatusUpdate(const json::Value& before, const json::Value& after,
                                       FieldErrors& errors);
void ValidateLimitRange(const json::Value& range, FieldErrors& errors);
void ValidateHorizontalPodAutoscaler(const json::Value& autoscaler, FieldErrors& errors);
void ValidateHorizontalPodAutoscalerStatusUpdate(const json::Value& before,
                                                 const json::Value& after, FieldErrors& errors);
void ValidateRole(const json::Value& role, FieldErrors& errors);
void ValidateClusterRole(const json::Value& role, FieldErrors& errors);
void ValidateRoleBinding(const json::Value& binding, FieldErrors& errors);
void ValidateClusterRoleBinding(const json::Value& binding, FieldErrors& errors);
// Of both kinds of binding.
void ValidateRoleBindingUpdate(const json::Value& before, const json::Value& after,
                               FieldErrors& errors);
void ValidateIngress(const json::Value& ingress, FieldErrors& errors);
void ValidateIngressCreate(const json::Value& ingress, FieldErrors& errors);
void ValidateIngressStatusUpdate(const json::Value& before, const json::Value& after,
                                 FieldErrors& errors);
void ValidateIngressClass(const json::Value& ingress_class, FieldErrors& errors);
void ValidateIngressClassUpdate(const json::Value& before, const json::Value& after,
                                FieldErrors& errors);
void ValidateApiService(const json::Value& service, FieldErrors& errors);
void ValidateMutatingWebhookConfiguration(const json::Value& configuration, FieldErrors& errors);
void ValidateValidatingWebhookConfiguration(const json::Value& configuration, FieldErrors& errors);
void ValidateNetworkPolicy(const json::Value& policy, FieldErrors& errors);

void ValidatePodDisruptionBudget(const json::Value& budget, FieldErrors& errors);
void ValidatePodDisruptionBudgetStatusUpdate(const json::Value& before, const json::Value& after,
                                             FieldErrors& errors);

}  // namespace muster::schema
