#include "packing/planner_policy.h"

#include <string>
#include <utility>

#include <fmt/core.h>

#include "cluster/resources.h"
#include "scheduler/pending.h"

namespace muster::bench {
namespace {

using cluster::GpuAsk;
using cluster::GpuState;

constexpr char kProductLabel[] = "nvidia.com/gpu.product";
constexpr int64_t kMib = 1024 * 1024;
constexpr int64_t kPodsPerNode = 1'000'000;  // the experiment has no such limit

std::string ModelName(int model) { return fmt::format("model-{}", model); }

cluster::NodeInfo ToNode(const GpuState& state, size_t index) {
  const std::string gpu(cluster::resource::kNvidiaGpu);
  cluster::NodeInfo node;
  node.name = node.hostname = fmt::format("node-{}", index);
  node.uid = node.name;
  node.has_hostname = true;
  cluster::AddTo(node.allocatable, {{"cpu", state.cpu_milli}});
  cluster::AddTo(node.allocatable, {{"memory", state.memory_mib * kMib}});
  cluster::AddTo(node.allocatable, {{"pods", kPodsPerNode}});
  if (state.gpus == 0) return node;
  node.labels[kProductLabel] = ModelName(state.model);
  cluster::AddTo(node.allocatable, {{gpu, state.gpus}});
  cluster::AddTo(node.allocatable, {{std::string(cluster::resource::kGpuMilli),
                                     int64_t{state.gpus} * cluster::kWholeGpu}});
  for (int64_t i = 0; i < state.gpus; ++i)
    node.devices.push_back({gpu, fmt::format("{}-gpu-{}", node.name, i), i, "GPU"});
  return node;
}

cluster::PodInfo ToPod(const GpuAsk& ask, int64_t number) {
  cluster::PodInfo pod;
  pod.ns = "default";
  pod.name = pod.uid = fmt::format("pod-{}", number);
  pod.scheduler_name = "default-scheduler";
  pod.created = Time(seconds(number));
  cluster::PodConstraints& wants = pod.constraints;
  cluster::AddTo(wants.requests, {{"pods", 1}});
  cluster::AddTo(wants.requests, {{"cpu", ask.cpu_milli}});
  cluster::AddTo(wants.requests, {{"memory", ask.memory_mib * kMib}});
  if (ask.IsShare()) {
    cluster::AddTo(wants.requests, {{std::string(cluster::resource::kGpuMilli), ask.gpu_milli}});
  } else if (ask.gpus > 0) {
    cluster::AddTo(wants.requests, {{std::string(cluster::resource::kNvidiaGpu), ask.gpus}});
  }
  if (ask.models == 0) return pod;
  cluster::Requirement models{kProductLabel, cluster::SelectorOperator::kIn, {}};
  for (int model = 0; model <= cluster::kMaxGpuModels; ++model) {
    if ((ask.models >> model & 1) != 0) models.values.push_back(ModelName(model));
  }
  wants.affinity.has_terms = true;
  wants.affinity.terms.push_back({{std::move(models)}, {}});
  return pod;
}

}  // namespace

PlannerPolicy::PlannerPolicy(const std::vector<GpuState>& nodes) {
  config_.explain = false;
  for (size_t i = 0; i < nodes.size(); ++i) cache_.UpsertNode(ToNode(nodes[i], i));
}

bool PlannerPolicy::Arrive(const GpuAsk& ask) {
  cluster::PodInfo pod = ToPod(ask, ++arrived_);
  const cluster::PodKey key{pod.ns, pod.name};
  cache_.UpsertPod(std::move(pod));
  const scheduler::Queue queue =
      scheduler::BuildQueue(cache_, {{key, cache_.FindPod(key)}}, {}, {});
  const scheduler::PlanResult plan = scheduler::Plan(cache_.snapshot(), queue, config_, Time{});
  config_.packing = plan.packing;
  const std::vector<scheduler::Assignment>& places = plan.units.front().assignments;
  if (!places.empty() && cache_.Assume(key, places.front().node, places.front().devices))
    return true;
  cache_.RemovePod(key);
  return false;
}

}  // namespace muster::bench
