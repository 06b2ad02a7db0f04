#include "agent/node/gpu_slices.h"

#include <algorithm>

#include "base/strings.h"
#include "cluster/device_shares.h"

namespace muster::agent {
namespace {

using Uses = std::vector<DeviceAllocator::GpuUse>;

// The number of a share; -1: the device is a whole one.
int64_t NumberOf(std::string_view id) {
  const size_t gpu = cluster::GpuOf(id).size();
  return gpu == id.size() ? -1 : ParseInt(id.substr(gpu + 2)).value_or(0);
}

// Cut like this, the GPU is still offered as what pods have of it.
bool Keeps(const gpu::TimeSlicing& slicing, const Uses& uses) {
  return std::ranges::all_of(uses, [&](const DeviceAllocator::GpuUse& use) {
    const int64_t number = NumberOf(use.id);
    if (number < 0) return slicing.replicas == 1;
    return slicing.replicas > 1 && number < slicing.replicas &&
           slicing.renamed == (use.resource == gpu::kSharedGpuResource);
  });
}

// As an earlier run must have cut it: at least so often.
gpu::TimeSlicing FormOf(const Uses& uses) {
  gpu::TimeSlicing form;
  for (const DeviceAllocator::GpuUse& use : uses) {
    if (const int64_t number = NumberOf(use.id); number >= 0)
      form.replicas = std::max({form.replicas, number + 1, int64_t{2}});
    form.renamed |= use.resource == gpu::kSharedGpuResource;
  }
  return form;
}

}  // namespace

std::vector<cluster::Device> GpuSlices::Cut(const std::vector<cluster::Device>& gpus) {
  std::vector<cluster::Device> out;
  waiting_ = 0;
  for (const cluster::Device& gpu : gpus) {
    const Uses uses = allocator_.UsesOf(gpu.id);
    const auto [entry, is_new] = now_.emplace(gpu.id, wish_);
    gpu::TimeSlicing& now = entry->second;
    if (uses.empty()) {
      now = wish_;
    } else if (!Keeps(now, uses)) {
      now = Keeps(wish_, uses) ? wish_ : FormOf(uses);
    }
    if (now != wish_) ++waiting_;
    if (now.replicas == 1) {
      out.push_back(gpu);
      continue;
    }
    for (int64_t number = 0; number < now.replicas; ++number) {
      cluster::Device share = gpu;
      share.id = gpu::ShareName(gpu.id, number);
      share.index = gpu.index + number * static_cast<int64_t>(gpus.size());
      share.links.clear();  // they name GPUs, not shares
      if (now.renamed) share.resource = gpu::kSharedGpuResource;
      out.push_back(std::move(share));
    }
  }
  std::ranges::stable_sort(out, {}, &cluster::Device::index);
  return out;
}

}  // namespace muster::agent
