#include "gpu/simulated_gpus.h"

#include <fmt/core.h>

#include <algorithm>

#include "gpu/labels.h"

namespace muster::gpu {

std::vector<Gpu> SimulatedGpus(int count, std::string_view model) {
  std::vector<Gpu> gpus;
  for (int i = 0; i < std::min(count, kMaxSimulatedGpus); ++i) {
    Gpu gpu;
    gpu.uuid = fmt::format("GPU-sim-{}", i);
    gpu.index = i;
    gpu.model = model;
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

std::string SimulatedProductLabel(std::string_view model) {
  const bool says_so = model.starts_with("Simulated");
  return LabelValue(says_so ? std::string(model) : fmt::format("Simulated-{}", model));
}

}  // namespace muster::gpu
