#include "controllers/controllers.h"

#include <memory>
#include <utility>

#include "controllers/clusterroles/cluster_role_aggregation_controller.h"
#include "controllers/cronjob/cronjob_controller.h"
#include "controllers/daemonset/daemonset_controller.h"
#include "controllers/deployment/deployment_controller.h"
#include "controllers/disruption/disruption_controller.h"
#include "controllers/endpointslice/endpoints_controller.h"
#include "controllers/endpointslice/endpoints_mirror_controller.h"
#include "controllers/endpointslice/endpointslice_controller.h"
#include "controllers/garbage/garbage_controller.h"
#include "controllers/interruption/node_interruption_controller.h"
#include "controllers/job/job_controller.h"
#include "controllers/job/tracked_pods_controller.h"
#include "controllers/jobset/jobset_controller.h"
#include "controllers/namespaces/namespace_controller.h"
#include "controllers/namespaces/namespace_furniture.h"
#include "controllers/nodelifecycle/node_lifecycle_controller.h"
#include "controllers/persistentvolume/ephemeral_volume_controller.h"
#include "controllers/persistentvolume/persistent_volume_controller.h"
#include "controllers/persistentvolume/protection_controllers.h"
#include "controllers/podautoscaler/podautoscaler_controller.h"
#include "controllers/podgc/pod_gc_controller.h"
#include "controllers/queues/queue_controllers.h"
#include "controllers/queues/queued_job_controller.h"
#include "controllers/replicaset/replicaset_controller.h"
#include "controllers/resourcequota/resource_quota_controller.h"
#include "controllers/statefulset/statefulset_controller.h"
#include "controllers/tainteviction/taint_eviction_controller.h"

namespace muster::controllers {

void AddAll(client::Runtime& runtime, client::ResourceDiscovery& discovery, Options options) {
  runtime.Add(std::make_unique<NamespaceFurnitureController>(std::move(options.root_ca_pem)));
  runtime.Add(std::make_unique<ClusterRoleAggregationController>());
  runtime.Add(std::make_unique<EndpointSliceController>());
  runtime.Add(std::make_unique<EndpointsController>());
  runtime.Add(std::make_unique<EndpointsMirrorController>());
  runtime.Add(std::make_unique<NodeLifecycleController>());
  runtime.Add(std::make_unique<TaintEvictionController>());
  runtime.Add(std::make_unique<NodeInterruptionController>());
  runtime.Add(std::make_unique<PodGcController>());
  runtime.Add(std::make_unique<ReplicaSetController>());
  runtime.Add(std::make_unique<DeploymentController>());
  runtime.Add(std::make_unique<JobController>());
  runtime.Add(std::make_unique<TrackedPodsController>());
  runtime.Add(std::make_unique<CronJobController>());
  runtime.Add(std::make_unique<JobSetController>());
  for (const schema::QueuedKind& kind : schema::QueuedKinds())
    runtime.Add(std::make_unique<QueuedJobController>(kind));
  runtime.Add(std::make_unique<LocalQueueController>());
  runtime.Add(std::make_unique<ClusterQueueController>());
  runtime.Add(std::make_unique<ResourceFlavorController>());
  runtime.Add(std::make_unique<DisruptionController>(discovery));
  runtime.Add(std::make_unique<StatefulSetController>());
  runtime.Add(std::make_unique<DaemonSetController>());
  runtime.Add(std::make_unique<ResourceQuotaController>(discovery));
  runtime.Add(std::make_unique<PersistentVolumeController>());
  runtime.Add(std::make_unique<ClaimProtectionController>());
  runtime.Add(std::make_unique<VolumeProtectionController>());
  runtime.Add(std::make_unique<EphemeralVolumeController>());
  runtime.Add(
      std::make_unique<PodAutoscalerController>(discovery, options.autoscaler_period));
  runtime.Add(std::make_unique<NamespaceController>(discovery));
  runtime.Add(std::make_unique<GarbageController>(discovery));
}

}  // namespace muster::controllers
