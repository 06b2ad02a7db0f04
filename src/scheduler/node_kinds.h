// src/scheduler/node_kinds.h
//
// Nodes of one kind as one row of an explanation: "12 x 8 GPU H100: Insufficient nvidia.com/gpu, 3
// free at most on one". A kind is the number and model of the devices; of nodes without any, their
// cpu and memory.
//
// Thread: any (pure).

#pragma once

#include <string>
#include <vector>

#include "cluster/pod_info.h"
#include "scheduler/explain.h"
#include "scheduler/pod_rules.h"

namespace muster::scheduler {

// The label by which nodes name the model of their GPUs (NVIDIA's device plugin).
inline constexpr std::string_view kGpuModelLabel = "nvidia.com/gpu.product";

// "8 GPU H100", "4 amd.com/gpu", "96 cpu 1024Gi".
std::string KindOf(const cluster::NodeInfo& node);
// "H100"; "" if the node does not say.
std::string ModelOf(const cluster::NodeInfo& node);

// All nodes, against a pod that fits none; the largest kind first. What is free is not said yet.
std::vector<NodeKind> GroupNodes(PodRules& pod_rules, cluster::ShapeIndex shape,
                                 cluster::IdentityIndex identity);
// What is free of the resource on nodes that pass the pod's other rules. REQUIRES: `kinds` are all
// of the snapshot's nodes.
void AddFree(const cluster::ClusterSnapshot& snapshot, cluster::ShapeIndex shape,
             cluster::ResourceIndex scarce, std::vector<NodeKind>& kinds);

}  // namespace muster::scheduler
