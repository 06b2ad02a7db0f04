// src/gpu/gpu_health.h
//
// GpuHealth: which GPUs a node offers, from what the driver says time after time. A GPU that is
// missing or has a fault leaves at once; it comes back only after `steady_looks` looks in a row
// without a fault, so that one that flaps stays away. While the driver does not answer no GPU is
// offered.
//
// Thread:     not shared (pure).
// Invariants: a GPU that was seen once stays known, by its uuid.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "gpu/inventory.h"

namespace muster::gpu {

class GpuHealth {
 public:
  struct Known {
    Gpu gpu;  // as last seen
    bool healthy = true;
    std::string why;  // "": healthy; else what is or was the matter with it
    int fine_looks = 0;
  };

  explicit GpuHealth(int steady_looks) : steady_looks_(steady_looks) {}

  // Takes in one look; `counts`: it is one of the regular ones, not one between them. True when a
  // GPU came, left, or changed its health or its place.
  bool Observe(const Result<Inventory>& look, bool counts);

  const std::vector<Known>& gpus() const { return gpus_; }  // by index
  // What concerns all GPUs; of the last look that was answered.
  const Inventory& inventory() const { return inventory_; }
  // Reason and message of what is wrong; "" when every GPU is healthy. Reasons: NVMLHang,
  // NVMLError, GPUUnhealthy.
  std::string_view fault_reason() const { return fault_reason_; }
  const std::string& fault_message() const { return fault_message_; }

 private:
  void Judge(Known& known, const std::string& fault, bool counts);
  void Summarize(const Result<Inventory>& look);

  const int steady_looks_;
  std::vector<Known> gpus_;
  Inventory inventory_;
  std::string_view fault_reason_;
  std::string fault_message_;
};

// "GPU 1 (GPU-4d83..., NVIDIA H200)", as events and conditions name it.
std::string Describe(const Gpu& gpu);

}  // namespace muster::gpu
