#include "simulator/gpu_use.h"

#include <gtest/gtest.h>

#include "simulator/trace_reader.h"

namespace muster::simulator {
namespace {

PodSet Pods(int64_t count, int64_t gpus, int64_t cpu_milli) {
  PodSet set;
  set.count = count;
  cluster::AddTo(set.constraints.requests, {{"cpu", cpu_milli}});
  cluster::AddTo(set.constraints.requests, {{"nvidia.com/gpu", gpus}});
  return set;
}

// Three of four pods want 8 GPUs, one wants 3 GPUs and 50 of the node's 96 cpus.
TEST(GpuUse, CountsWhatIsOfNoUseToTheMix) {
  Workload workload{*NodesOfShape("2x8"), {}};
  workload.jobs.resize(1);
  workload.jobs[0].pods = {Pods(3, 8, 1000), Pods(1, 3, 50'000)};
  cluster::ClusterCache cache;
  for (const cluster::NodeInfo& node : workload.nodes) cache.UpsertNode(node);
  GpuUse use(workload, cache);
  EXPECT_EQ(use.total(), 16);
  // Empty nodes: pods of 8 use all; of those with 3 the cpus hold one, so 5 stay free on each.
  EXPECT_DOUBLE_EQ(use.unusable(), 2 * 0.25 * 5);
  EXPECT_EQ(use.stranded(), 0);

  cluster::PodInfo pod;
  pod.ns = "d";
  pod.name = "p";
  pod.node_name = "node-0";
  pod.constraints.requests = {{"cpu", 1000}, {"nvidia.com/gpu", 1}};
  cache.UpsertPod(pod);
  use.Use("node-0", 1);
  EXPECT_EQ(use.used(), 1);
  EXPECT_EQ(use.stranded(), 7);
  // 7 are free there, none of them for a pod of 8.
  EXPECT_DOUBLE_EQ(use.unusable(), 0.75 * 7 + 0.25 * 4 + 0.25 * 5);
  cache.RemovePod({"d", "p"});
  use.Use("node-0", -1);
  EXPECT_DOUBLE_EQ(use.unusable(), 2.5);
}

TEST(GpuUse, LooksAtTheKindsWithTheMostPods) {
  Workload workload{*NodesOfShape("1x8"), {}};
  workload.jobs.resize(1);
  for (size_t i = 0; i < kMaxKindsInMix; ++i)
    workload.jobs[0].pods.push_back(Pods(2, 1, 1 + static_cast<int64_t>(i)));
  workload.jobs[0].pods.push_back(Pods(1, 100, 1));  // fits nowhere, and is not looked at
  cluster::ClusterCache cache;
  for (const cluster::NodeInfo& node : workload.nodes) cache.UpsertNode(node);
  EXPECT_DOUBLE_EQ(GpuUse(workload, cache).unusable(), 0);
}

}  // namespace
}  // namespace muster::simulator
