// src/schema/distributed_training.h
//
// How the few words of a DistributedTraining (ml.example.com/v1) are read, by all who read them.
//
// Thread: any (pure functions).

#pragma once

#include <string>
#include <string_view>

namespace muster::schema {

inline constexpr std::string_view kDistributedTraining = "DistributedTraining";

// "100GB" and "100 GB" are 100G: people write bytes, Kubernetes' quantities do not.
std::string SizeAsQuantity(std::string_view text);

// Whether a node whose label nvidia.com/gpu.product is `product` has GPUs of this type: "H100" is a
// part of "NVIDIA-H100-80GB-HBM3", and "L4" is none of "NVIDIA-L40S".
bool IsGpuType(std::string_view product, std::string_view type);

}  // namespace muster::schema
