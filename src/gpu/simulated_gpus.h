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

#include "gpu/inventory.h"

namespace muster::gpu {

inline constexpr int kMaxSimulatedGpus = 64;

// `count` is cut to 0..kMaxSimulatedGpus.
std::vector<Gpu> SimulatedGpus(int count, std::string_view model);

// The value of the label nvidia.com/gpu.product: a simulated model begins with "Simulated".
std::string SimulatedProductLabel(std::string_view model);

}  // namespace muster::gpu
