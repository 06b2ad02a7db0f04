#include "gpu/simulated_gpus.h"

#include <fmt/core.h>

#include <algorithm>

namespace muster::gpu {

std::vector<Gpu> SimulatedGpus(int count, std::string_view model) {
  std::vector<Gpu> gpus;
  for (int i = 0; i < std::min(count, kMaxSimulatedGpus); ++i) {
    gpus.push_back({fmt::format("GPU-sim-{}", i), i, std::string(model)});
  }
  return gpus;
}

std::string ProductLabel(std::string_view model, bool simulated) {
  std::string label;
  if (simulated && !model.starts_with("Simulated")) label = "Simulated-";
  for (const char c : model) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    label.push_back(plain ? c : '-');
  }
  return label.substr(0, 63);
}

}  // namespace muster::gpu
