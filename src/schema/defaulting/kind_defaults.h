// src/schema/defaulting/kind_defaults.h
//
// Private to src/schema: the defaults of single kinds, called through ApplyDefaults.
//
// Thread: any (pure functions).

#pragma once

#include "json/value.h"

namespace muster::schema {

json::Value DefaultPod(json::Value pod);
json::Value DefaultService(json::Value service);
json::Value DefaultSecret(json::Value secret);
json::Value DefaultPersistentVolumeClaim(json::Value claim);
json::Value DefaultPersistentVolumeClaimSpec(json::Value spec);
json::Value DefaultNamespace(json::Value ns);
json::Value DefaultNode(json::Value node);
json::Value DefaultPriorityClass(json::Value priority_class);
json::Value DefaultEndpointSlice(json::Value slice);
json::Value DefaultEndpoints(json::Value endpoints);
json::Value DefaultCustomResourceDefinition(json::Value crd);
json::Value DefaultInferenceService(json::Value service);
json::Value DefaultRayCluster(json::Value cluster);
json::Value DefaultPyTorchJob(json::Value job);
json::Value DefaultTFJob(json::Value job);
json::Value DefaultJAXJob(json::Value job);
json::Value DefaultMPIJob(json::Value job);

json::Value DefaultPodTemplate(json::Value pod_template);  // {metadata, spec}
void DefaultTemplateOf(json::Value& spec);                 // spec.template
json::Value DefaultDeployment(json::Value deployment);
json::Value DefaultReplicaSet(json::Value replica_set);
json::Value DefaultStatefulSet(json::Value stateful_set);
json::Value DefaultDaemonSet(json::Value daemon_set);
json::Value DefaultJob(json::Value job);
json::Value DefaultCronJob(json::Value cron_job);
json::Value DefaultJobSet(json::Value job_set);
json::Value DefaultPodDisruptionBudget(json::Value budget);
json::Value DefaultPersistentVolume(json::Value volume);
json::Value DefaultStorageClass(json::Value storage_class);
json::Value DefaultCsiDriver(json::Value driver);
json::Value DefaultLimitRange(json::Value range);
json::Value DefaultHorizontalPodAutoscaler(json::Value autoscaler);
json::Value DefaultRoleBinding(json::Value binding);
json::Value DefaultIngressClass(json::Value ingress_class);
json::Value DefaultApiService(json::Value service);
json::Value DefaultMutatingWebhookConfiguration(json::Value configuration);
json::Value DefaultValidatingWebhookConfiguration(json::Value configuration);
json::Value DefaultNetworkPolicy(json::Value policy);

}  // namespace muster::schema
