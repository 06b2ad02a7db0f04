// src/cluster/device_shares.h
//
// Shares of a device that pods use by turns: "GPU-a::2" is one of GPU-a, as NVIDIA's device plugin
// names it.
//
// Thread: any (pure functions).

#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace muster::cluster {

// The device that the id means or is a share of.
inline std::string_view GpuOf(std::string_view id) { return id.substr(0, id.find("::")); }

// Each once, in the order in which they are first named.
inline std::vector<std::string> GpusOf(const std::vector<std::string>& ids) {
  std::vector<std::string> gpus;
  for (const std::string& id : ids) {
    const std::string gpu(GpuOf(id));
    if (std::find(gpus.begin(), gpus.end(), gpu) == gpus.end()) gpus.push_back(gpu);
  }
  return gpus;
}

}  // namespace muster::cluster
