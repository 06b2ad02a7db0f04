#include "cluster/packing/cpu_threat.h"

#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace muster::cluster {
namespace {

GpuState Node(int cores) {
  GpuState node{.cpu_milli = cores * 1000, .memory_mib = 1 << 20, .gpus = 1};
  node.free_milli[0] = kWholeGpu;
  return node;
}

// 100 nodes of one GPU and 20 cores; pods of a GPU and 4 cores; as many without, of `cores`.
CpuThreat Assessed(FillPrices& prices, int cores) {
  PodMix mix;
  for (int i = 0; i < 100; ++i) {
    mix.Add({.cpu_milli = 4000, .memory_mib = 1, .gpus = 1, .gpu_milli = kWholeGpu});
    mix.Add({.cpu_milli = cores * 1000, .memory_mib = 1});
  }
  const std::vector<std::pair<GpuState, double>> states = {{Node(20), 100}};
  prices.Solve(states, mix);
  CpuThreat threat;
  threat.Assess(prices, states, mix);
  return threat;
}

TEST(CpuThreat, IsNoneWhileCpuSuffices) {
  FillPrices prices(2000, 102'400, 100);
  const CpuThreat threat = Assessed(prices, 14);
  EXPECT_FALSE(threat.looms());
  EXPECT_EQ(threat.ValueUnder(prices, Node(20)), prices.Value(Node(20)));
}

TEST(CpuThreat, CpuThatNobodyElseCanTakeIsWorthMore) {
  FillPrices prices(2000, 102'400, 100);
  const CpuThreat threat = Assessed(prices, 17);
  ASSERT_TRUE(threat.looms());
  // Pods of 17 cores leave 3 of 20, too few for the GPU; of 16 they take none.
  EXPECT_NEAR(prices.Value(Node(16)), prices.Value(Node(20)), 1);
  EXPECT_NEAR(threat.ValueUnder(prices, Node(16)), prices.Value(Node(16)), 1e-6);
  EXPECT_LT(threat.ValueUnder(prices, Node(20)), prices.Value(Node(20)) - 50);
}

}  // namespace
}  // namespace muster::cluster
