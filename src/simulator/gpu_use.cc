#include "simulator/gpu_use.h"

#include <algorithm>

namespace muster::simulator {

using cluster::ResourceList;

GpuUse::GpuUse(const Workload& workload, const cluster::ClusterCache& cache) : cache_(cache) {
  std::map<ResourceList, int64_t> pods;
  for (const Job& job : workload.jobs) {
    for (const PodSet& set : job.pods) {
      if (set.GpusPerPod() > 0) pods[set.constraints.requests] += set.count;
    }
  }
  std::vector<std::pair<int64_t, ResourceList>> by_count;
  for (const auto& [requests, count] : pods) by_count.emplace_back(-count, requests);
  std::sort(by_count.begin(), by_count.end());
  by_count.resize(std::min(by_count.size(), kMaxKindsInMix));
  int64_t all = 0;
  for (const auto& [count, requests] : by_count) all -= count;
  for (auto& [count, requests] : by_count)
    mix_.push_back({static_cast<double>(-count) / static_cast<double>(all), std::move(requests)});
  for (const cluster::NodeInfo& node : workload.nodes) {
    NodeUse& use = nodes_[node.name];
    use.offered = cluster::AmountOf(node.allocatable, cluster::resource::kNvidiaGpu);
    total_ += use.offered;
    use.unusable = UnusableOn(node.name);
    unusable_ += use.unusable;
  }
}

double GpuUse::UnusableOn(const std::string& name) const {
  const cluster::ClusterSnapshot& snapshot = cache_.snapshot();
  const cluster::NodeIndex node = cache_.FindNode(name);
  const auto free = [&](std::string_view resource) {
    const cluster::ResourceIndex index = snapshot.FindResource(resource);
    return index == cluster::kNoIndex ? 0 : std::max<int64_t>(snapshot.Free(node, index), 0);
  };
  const int64_t gpus = free(cluster::resource::kNvidiaGpu);
  if (gpus == 0) return 0;
  double unusable = 0;
  for (const Kind& kind : mix_) {
    int64_t pods = INT64_MAX, each = 0;
    for (const auto& [resource, amount] : kind.requests) {
      if (amount > 0) pods = std::min(pods, free(resource) / amount);
      if (resource == cluster::resource::kNvidiaGpu) each = amount;
    }
    unusable += kind.share * static_cast<double>(gpus - pods * each);
  }
  return unusable;
}

void GpuUse::Use(const std::string& name, int64_t gpus) {
  NodeUse& node = nodes_[name];
  const auto stranded = [&] { return node.used > 0 ? node.offered - node.used : 0; };
  stranded_ -= stranded();
  node.used += gpus;
  used_ += gpus;
  stranded_ += stranded();
  unusable_ -= node.unusable;
  node.unusable = UnusableOn(name);
  unusable_ += node.unusable;
}

}  // namespace muster::simulator
