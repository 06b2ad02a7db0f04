// src/gpu/gpu_health.h
//
// GpuHealth: which GPUs a node offers, from what the driver says time after time. A GPU that is
// missing or has a fault leaves at once; it comes back only after `steady_looks` looks in a row
// without a fault, so that one that flaps stays away. While the driver does not answer no GPU is
// offered. An XID that says that the GPU has failed (xids.h) keeps it away until it has been gone
// from the driver's list, which is what a repair looks like, or for the life of this object.
//
// Thread:     not shared (pure).
// Invariants: a GPU that was seen once stays known, by its uuid.

#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "gpu/inventory.h"
#include "gpu/xids.h"

namespace muster::gpu {

class GpuHealth {
 public:
  struct Known {
    Gpu gpu;  // as last seen
    bool healthy = true;
    bool unknown = false;  // not healthy, but only because the driver did not answer
    std::string why;       // "": healthy; else what is or was the matter with it
    int fine_looks = 0;
    int64_t last_xid = 0;   // the latest of all; 0: none
    int64_t fatal_xid = 0;  // keeps it away; 0: none
  };

  explicit GpuHealth(int steady_looks, XidPolicy xids = {})
      : steady_looks_(steady_looks), xids_(std::move(xids)) {}

  // Takes in one look; `counts`: it is one of the regular ones, not one between them. True when a
  // GPU came, left, told of an XID, or changed its health or its place.
  bool Observe(const Result<Inventory>& look, bool counts);

  const std::vector<Known>& gpus() const { return gpus_; }  // by index
  const XidPolicy& xids() const { return xids_; }
  // Something is missing that the driver may find when it is asked from the beginning.
  bool asks_anew() const { return asks_anew_; }
  // What concerns all GPUs; of the last look that was answered.
  const Inventory& inventory() const { return inventory_; }
  // Reason and message of what is wrong; "" when every GPU is healthy. Reasons: NVMLHang,
  // NVMLError, GPUUnhealthy.
  std::string_view fault_reason() const { return fault_reason_; }
  const std::string& fault_message() const { return fault_message_; }

 private:
  void Judge(Known& known, const std::string& fault, bool counts);
  void TakeXids(Known& known) const;
  void Summarize(const Result<Inventory>& look);

  const int steady_looks_;
  const XidPolicy xids_;
  bool asks_anew_ = false;
  std::vector<Known> gpus_;
  Inventory inventory_;
  std::string_view fault_reason_;
  std::string fault_message_;
};

// "GPU 1 (GPU-4d83..., NVIDIA H200)", as events and conditions name it.
std::string Describe(const Gpu& gpu);

}  // namespace muster::gpu
