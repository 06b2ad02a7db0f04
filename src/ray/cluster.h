// src/ray/cluster.h
//
// Cluster: a RayCluster (ray.io/v1) as the controller reads it, defaults applied; and the names of
// what belongs to it. Contract: kuberay ray-operator/apis/ray/v1 and controllers/ray/utils.
//
// Thread:     any (values and pure functions).

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "client/api_client.h"
#include "json/value.h"

namespace muster::ray {

namespace resources {
inline const client::Resource kRayClusters{"ray.io", "v1", "rayclusters"};
inline const client::Resource kRayJobs{"ray.io", "v1", "rayjobs"};
inline const client::Resource kRayServices{"ray.io", "v1", "rayservices"};
inline const client::Resource kRoles{"rbac.authorization.k8s.io", "v1", "roles"};
inline const client::Resource kRoleBindings{"rbac.authorization.k8s.io", "v1", "rolebindings"};
}  // namespace resources

inline constexpr std::string_view kGroup = "ray.io";
inline constexpr std::string_view kManagedByUs = "ray.io/kuberay-operator";

inline constexpr std::string_view kClusterLabel = "ray.io/cluster";
inline constexpr std::string_view kNodeTypeLabel = "ray.io/node-type";
inline constexpr std::string_view kGroupLabel = "ray.io/group";
inline constexpr std::string_view kIdentifierLabel = "ray.io/identifier";
inline constexpr std::string_view kIsRayNodeLabel = "ray.io/is-ray-node";
inline constexpr std::string_view kServeLabel = "ray.io/serve";
inline constexpr std::string_view kOriginNameLabel = "ray.io/originated-from-cr-name";
inline constexpr std::string_view kOriginKindLabel = "ray.io/originated-from-crd";
// "true": the first container's own command stays.
inline constexpr std::string_view kOwnCommandAnnotation = "ray.io/overwrite-container-cmd";
// On a pod: the hash of what it was made of.
inline constexpr std::string_view kTemplateHashAnnotation = "ray.muster.dev/template-hash";

inline constexpr std::string_view kHeadGroup = "headgroup";
inline constexpr int64_t kGcsPort = 6379;
inline constexpr int64_t kDashboardPort = 8265;
inline constexpr int64_t kClientPort = 10001;
inline constexpr int64_t kMetricsPort = 8080;
inline constexpr int64_t kServePort = 8000;
inline constexpr int64_t kAgentPort = 52365;

// Of one group; what is above is not made.
inline constexpr int64_t kMaxWorkersPerGroup = 10'000;

struct WorkerGroup {
  std::string name;
  int64_t replicas = 0, min_replicas = 0, max_replicas = 0;
  bool suspend = false;
  std::vector<std::string> workers_to_delete;
  json::Value start_params;
  json::Value pod_template;

  // How many workers there are to be: replicas within minReplicas and maxReplicas.
  int64_t Desired() const;
};

struct Cluster {
  json::Value object;
  std::string ns, name, uid;
  json::Value head;  // spec.headGroupSpec
  std::vector<WorkerGroup> groups;
  bool autoscaling = false;
  bool suspend = false;
  bool recreates = false;  // upgradeStrategy Recreate

  const WorkerGroup* Find(std::string_view group) const;
  int64_t DesiredWorkers() const;
  // The pods that must have a place at once: the head and what the autoscaler never takes away;
  // without one, all.
  int64_t MinMembers() const;

  std::string HeadServiceName() const { return name + "-head-svc"; }
  // "c-head-svc.ns.svc.cluster.local"
  std::string HeadAddress() const;
  std::string PodGroupName() const { return "ray-" + name + "-pg"; }
  // Of the head; the cluster's own unless its template names one.
  std::string ServiceAccountName() const;
};

Cluster ParseCluster(const json::Value& object);
// Whether another controller looks after it; of any of the three kinds.
bool IsManagedElsewhere(const json::Value& object);

bool IsHead(const json::Value& pod);
std::string_view GroupOf(const json::Value& pod);

}  // namespace muster::ray
