#include "scheduler/packing_terms.h"

#include <algorithm>
#include <functional>
#include <string_view>

namespace muster::scheduler {

using cluster::GpuAsk;
using cluster::GpuState;
using cluster::kNoIndex;
using cluster::NodeIndex;
using cluster::ResourceIndex;

namespace {

constexpr std::string_view kProductLabel = "nvidia.com/gpu.product";
constexpr int64_t kMib = int64_t{1} << 20;

bool IsGpu(const cluster::ClusterSnapshot& snapshot, ResourceIndex resource) {
  return resource >= cluster::kFirstExtendedIndex &&
         snapshot.ResourceName(resource).ends_with("/gpu");
}

int32_t Narrow(int64_t value) {
  return static_cast<int32_t>(std::clamp<int64_t>(value, 0, INT32_MAX));
}

// What is left of GPUs that have shares, behind the whole ones.
void AddShared(const cluster::ClusterSnapshot& snapshot, NodeIndex node, GpuState& state) {
  auto* const begin = state.free_milli.begin() + state.WholeGpus();
  auto* end = begin;
  for (const auto& gpu : snapshot.GpusLeft(node)) {
    if (gpu.milli > 0 && gpu.milli < cluster::kWholeGpu && end != state.free_milli.end())
      *end++ = gpu.milli;
  }
  std::sort(begin, end, std::greater<>());
}

}  // namespace

std::vector<ResourceIndex> GpuResources(const cluster::ClusterSnapshot& snapshot) {
  std::vector<ResourceIndex> gpus;
  for (ResourceIndex resource = 0; resource < snapshot.resource_count(); ++resource)
    if (IsGpu(snapshot, resource)) gpus.push_back(resource);
  return gpus;
}

ResourceIndex GpuOf(const cluster::ClusterSnapshot& snapshot, NodeIndex node,
                    const std::vector<ResourceIndex>& gpus) {
  for (const ResourceIndex resource : gpus)
    if (snapshot.Offered(node, resource) > 0) return resource;
  return kNoIndex;
}

std::string ModelName(const cluster::ClusterSnapshot& snapshot, NodeIndex node, ResourceIndex gpu) {
  const cluster::Labels& labels = snapshot.Class(snapshot.ClassOf(node)).labels;
  const auto product = labels.find(kProductLabel);
  return snapshot.ResourceName(gpu) + (product == labels.end() ? "" : "=" + product->second);
}

GpuState StateOf(const cluster::ClusterSnapshot& snapshot, NodeIndex node, ResourceIndex gpu,
                 uint8_t model, Room room) {
  const auto amount = [&](ResourceIndex resource) {
    return room == Room::kFree ? snapshot.Free(node, resource) : snapshot.Offered(node, resource);
  };
  GpuState state;
  state.cpu_milli = Narrow(amount(cluster::kCpuIndex));
  state.memory_mib = Narrow(amount(cluster::kMemoryIndex) / kMib);
  state.model = model;
  if (gpu == kNoIndex) return state;
  const auto count = [](int64_t value) {
    return static_cast<uint8_t>(std::clamp<int64_t>(value, 0, cluster::kMaxGpusPerNode));
  };
  state.gpus = count(snapshot.Offered(node, gpu));
  std::fill_n(state.free_milli.begin(), std::min(state.gpus, count(amount(gpu))),
              static_cast<int16_t>(cluster::kWholeGpu));
  if (room == Room::kFree && snapshot.HasShares()) AddShared(snapshot, node, state);
  return state;
}

GpuAsk AskOf(const cluster::ClusterSnapshot& snapshot, const cluster::Shape& shape) {
  GpuAsk ask;
  ask.cpu_milli = Narrow(shape.AmountOf(cluster::kCpuIndex));
  ask.memory_mib = Narrow((shape.AmountOf(cluster::kMemoryIndex) + kMib - 1) / kMib);
  if (shape.gpu_milli > 0) {
    ask.gpus = 1;
    ask.gpu_milli = shape.gpu_milli;
    return ask;
  }
  for (const cluster::ResourceAmount& request : shape.requests) {
    if (request.amount <= 0 || !IsGpu(snapshot, request.resource)) continue;
    ask.gpus = static_cast<int16_t>(std::min<int64_t>(request.amount, INT16_MAX));
    ask.gpu_milli = cluster::kWholeGpu;
    break;
  }
  return ask;
}

}  // namespace muster::scheduler
