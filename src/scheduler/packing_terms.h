// src/scheduler/packing_terms.h
//
// Nodes and pods in the terms of packing (cluster/packing/gpu_state.h). GPUs are the extended
// resources whose name ends in "/gpu"; a model is one of these with the node's label
// nvidia.com/gpu.product.
//
// Thread: any (pure).

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/packing/gpu_state.h"
#include "cluster/snapshot.h"

namespace muster::scheduler {

std::vector<cluster::ResourceIndex> GpuResources(const cluster::ClusterSnapshot& snapshot);

// The first of `gpus` that the node offers; kNoIndex if none.
cluster::ResourceIndex GpuOf(const cluster::ClusterSnapshot& snapshot, cluster::NodeIndex node,
                             const std::vector<cluster::ResourceIndex>& gpus);

// "nvidia.com/gpu" or "nvidia.com/gpu=NVIDIA-H100-80GB-HBM3".
std::string ModelName(const cluster::ClusterSnapshot& snapshot, cluster::NodeIndex node,
                      cluster::ResourceIndex gpu);

enum class Room : uint8_t { kFree, kOffered };
cluster::GpuState StateOf(const cluster::ClusterSnapshot& snapshot, cluster::NodeIndex node,
                          cluster::ResourceIndex gpu, uint8_t model, Room room);

// Without models.
cluster::GpuAsk AskOf(const cluster::ClusterSnapshot& snapshot, const cluster::Shape& shape);

}  // namespace muster::scheduler
