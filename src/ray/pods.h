// src/ray/pods.h
//
// What a RayCluster is made of: the pods of its head and its workers, the head's Service, and one
// PodGroup. Contract: kuberay controllers/ray/common/{pod,service}.go.
//
// Thread:     any (pure functions).

#pragma once

#include <cstdint>
#include <string>

#include "json/value.h"
#include "ray/cluster.h"

namespace muster::ray {

// Labels that select all pods of the cluster, or its head.
json::Value HeadSelector(const Cluster& cluster);

json::Value MakeHeadPod(const Cluster& cluster, const std::string& pod_name);
json::Value MakeWorkerPod(const Cluster& cluster, const WorkerGroup& group,
                          const std::string& pod_name);
// What a pod of the group is made of, as a hash: another one after a change of the template or the
// flags, the same whatever its number.
std::string HeadHash(const Cluster& cluster);
std::string WorkerHash(const Cluster& cluster, const WorkerGroup& group);

// "c-head", "c-group-worker": what names of pods begin with.
std::string HeadPodBase(const Cluster& cluster);
std::string WorkerPodBase(const Cluster& cluster, const WorkerGroup& group);

// Headless unless the head's group says a type; its name resolves before the head is ready.
json::Value MakeHeadService(const Cluster& cluster);
json::Value PodGroupSpec(const Cluster& cluster);
json::Value MakePodGroup(const Cluster& cluster);

}  // namespace muster::ray
