// src/cluster/instance_types.h
//
// Shapes and prices of machines that can be rented. Those that are built in are Amazon's, as of
// us-east-1: on demand as Karpenter's provider for AWS lists them (2026-07-20), spot as SkyPilot's
// catalog has seen them (the dearest zone).
//
// Thread: any (values and pure functions).

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::cluster {

// Millionths of a US dollar for an hour: sums are exact.
using MicroUsd = int64_t;
inline constexpr MicroUsd kMicroUsdPerUsd = 1'000'000;

enum class CapacityType : uint8_t { kOnDemand, kSpot };
// "on-demand", "spot": the values of the label karpenter.sh/capacity-type.
std::string_view ToString(CapacityType type);

struct InstanceType {
  std::string name;  // "g5.2xlarge": label node.kubernetes.io/instance-type
  int64_t vcpus = 0;
  int64_t memory_bytes = 0;
  int gpus = 0;
  std::string gpu_name;         // "a10g": label karpenter.k8s.aws/instance-gpu-name
  std::string gpu_product;      // "NVIDIA-A10G": label nvidia.com/gpu.product
  int64_t gpu_memory_mib = 0;   // of each
  MicroUsd on_demand = 0;       // 0: not offered so
  MicroUsd spot = 0;            // likewise
  bool spot_estimated = false;  // nobody has seen that price: kSpotEstimate of on demand
  std::string arch = "amd64";   // label kubernetes.io/arch

  // 0: not offered so.
  MicroUsd Price(CapacityType type) const { return type == CapacityType::kSpot ? spot : on_demand; }
  bool operator==(const InstanceType&) const = default;
};

// What a spot price that nobody has seen is taken to be, in hundredths of that on demand: the
// convention of Karpenter's simulated provider (KWOK).
inline constexpr int64_t kSpotEstimatePercent = 70;

// Sorted by name.
const std::vector<InstanceType>& BuiltInInstanceTypes();
// nullptr if it is not built in.
const InstanceType* FindBuiltInInstanceType(std::string_view name);

// "1.212", "0.526", "98.3": dollars, with no more decimals than it has.
std::string UsdText(MicroUsd price);
// What that writes, up to a million dollars; nullopt for anything else, negative ones included.
std::optional<MicroUsd> ParseUsd(std::string_view text);

}  // namespace muster::cluster
