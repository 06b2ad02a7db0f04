// src/ray/test_objects.h
//
// Clusters and pods for this folder's tests, written as YAML.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "client/reconcile.h"
#include "json/parse.h"
#include "ray/cluster.h"

namespace muster::ray {

inline json::Value Yaml(std::string_view text) {
  auto documents = json::ParseYaml(text);
  CHECK(documents.has_value() && documents->size() == 1);
  return (*documents)[0];
}

// A head and a group of two workers.
inline json::Value TwoWorkers() {
  return Yaml(R"(
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: c, namespace: d, uid: u1, generation: 1, resourceVersion: "7"}
spec:
  headGroupSpec:
    rayStartParams: {num-cpus: "0"}
    template:
      spec: {containers: [{name: ray-head, image: i, resources: {limits: {cpu: 2, memory: 1Gi}}}]}
  workerGroupSpecs:
  - groupName: small
    replicas: 2
    minReplicas: 1
    maxReplicas: 4
    template:
      spec:
        containers:
        - name: ray-worker
          image: i
          resources: {requests: {cpu: 500m, memory: 1Gi}, limits: {cpu: 1500m, nvidia.com/gpu: 1}}
)");
}

inline json::Value ReadyPod(const std::string& name, std::string_view type,
                            std::string_view group) {
  json::Value pod = Yaml(R"(
metadata:
  namespace: d
  labels: {ray.io/cluster: c}
  ownerReferences: [{apiVersion: ray.io/v1, kind: RayCluster, name: c, uid: u1, controller: true}]
status: {phase: Running, podIP: 10.0.0.1, conditions: [{type: Ready, status: "True"}]}
)");
  return pod.SetPath({"metadata", "name"}, name)
      .SetPath({"metadata", "uid"}, "uid-" + name)
      .SetPath({"metadata", "labels", kNodeTypeLabel}, type)
      .SetPath({"metadata", "labels", kGroupLabel}, group);
}

// "create pods x", "delete pods x", "patch rayclusters x", "update rayclusters x/status".
inline std::vector<std::string> WritesOf(const client::Reconciled& pass) {
  std::vector<std::string> writes;
  for (const client::Write& write : pass.writes) {
    const std::string_view verb = write.verb == client::Write::Verb::kCreate   ? "create"
                                  : write.verb == client::Write::Verb::kDelete ? "delete"
                                  : write.verb == client::Write::Verb::kUpdate ? "update"
                                                                               : "patch";
    std::string text =
        fmt::format("{} {} {}", verb, write.target.resource.plural, write.target.name);
    if (!write.target.subresource.empty()) text += "/" + write.target.subresource;
    writes.push_back(std::move(text));
  }
  return writes;
}

// The status that the pass writes; null if it writes none.
inline json::Value StatusOf(const client::Reconciled& pass) {
  for (const client::Write& write : pass.writes)
    if (write.target.subresource == "status") return write.body["status"];
  return nullptr;
}

}  // namespace muster::ray
