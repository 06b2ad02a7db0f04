// src/agent/node/gpu_slices.h
//
// GpuSlices: as what each GPU of this node is offered: whole, or as shares for time-slicing. What
// is wished holds for a GPU from the moment at which nobody has any of it.
//
// Thread:     the loop thread.
// Invariants: what a pod has stays offered as it was, also after a restart.

#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/pod_workers/device_allocator.h"
#include "cluster/devices.h"
#include "gpu/time_slicing.h"

namespace muster::agent {

class GpuSlices {
 public:
  explicit GpuSlices(const DeviceAllocator& allocator) : allocator_(allocator) {}

  void Wish(const gpu::TimeSlicing& wish) { wish_ = wish; }
  const gpu::TimeSlicing& wish() const { return wish_; }

  // The devices that pods may get, of `gpus`; those that are free are cut as is wished. Shares lie
  // in such an order that the first of each GPU come before the second ones.
  std::vector<cluster::Device> Cut(const std::vector<cluster::Device>& gpus);
  // GPUs that the last Cut() left as they were, because somebody has them.
  int waiting() const { return waiting_; }

 private:
  gpu::TimeSlicing wish_;
  const DeviceAllocator& allocator_;
  std::map<std::string, gpu::TimeSlicing> now_;  // by uuid
  int waiting_ = 0;
};

}  // namespace muster::agent
