// src/gpu/simulated_gpus.h
//
// GPUs that do not exist, for trying out scheduling and jobs on a machine without any
// (`muster up --simulate-gpus N[:MODEL]`). Plainly named: ids begin with "GPU-sim-".
//
// Thread: any (pure).

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::gpu {

inline constexpr int kMaxSimulatedGpus = 64;
inline constexpr std::string_view kGpuResource = "nvidia.com/gpu";

struct Gpu {
  std::string id;
  int index = 0;
  std::string model;
  bool operator==(const Gpu&) const = default;
};

// `count` is cut to 0..kMaxSimulatedGpus.
std::vector<Gpu> SimulatedGpus(int count, std::string_view model);

// The value of the label nvidia.com/gpu.product: letters and digits stay, the rest becomes '-';
// a simulated model begins with "Simulated".
std::string ProductLabel(std::string_view model, bool simulated);

}  // namespace muster::gpu
