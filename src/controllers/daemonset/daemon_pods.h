// src/controllers/daemonset/daemon_pods.h
//
// Which nodes a DaemonSet wants a pod on, and that pod. Source: k8s.io/kubernetes
// pkg/controller/daemon.
//
// Thread: any (pure functions).

#pragma once

#include <cstdint>
#include <string>

#include "json/value.h"

namespace muster::controllers {

// The pod for a node: it goes there by affinity, and bears what keeps other pods away from nodes in
// trouble. `hash`: of the revision that keeps the template.
json::Value MakeDaemonPod(const json::Value& daemon_set, const std::string& node,
                          const std::string& hash, std::string name);

struct NodeVerdict {
  bool should_run = false;  // there has to be one
  bool may_go_on = false;   // one that is there may stay
};
// `pod_spec`: of MakeDaemonPod. NVIDIA's device plugin suits no node: ours offer GPUs themselves.
NodeVerdict JudgeNode(const json::Value& pod_spec, const json::Value& node);

// The node that the pod is on, or is meant for.
std::string NodeOfDaemonPod(const json::Value& pod);

}  // namespace muster::controllers
