#include "cluster/packing/gpu_state.h"

#include <vector>

#include <gtest/gtest.h>

namespace muster::cluster {
namespace {

GpuState Node(std::vector<int16_t> free) {
  GpuState node{.cpu_milli = 16'000, .memory_mib = 65'536};
  node.gpus = static_cast<uint8_t>(free.size());
  for (size_t i = 0; i < free.size(); ++i) node.free_milli[i] = free[i];
  return node;
}

TEST(GpuState, TakesWhatFits) {
  const GpuState node = Node({1000, 600, 0});
  EXPECT_TRUE(node.Takes({.cpu_milli = 16'000, .memory_mib = 65'536}));
  EXPECT_FALSE(node.Takes({.cpu_milli = 16'001}));
  EXPECT_FALSE(node.Takes({.memory_mib = 65'537}));
  EXPECT_TRUE(node.Takes({.gpus = 1, .gpu_milli = 1000}));
  EXPECT_FALSE(node.Takes({.gpus = 2, .gpu_milli = 1000}));
  EXPECT_FALSE(node.Takes({.gpus = 4, .gpu_milli = 1000}));
  EXPECT_EQ(node.IdleMilli(), 1600);
  EXPECT_EQ(node.WholeGpus(), 1);
}

TEST(GpuState, ModelsThatPodsName) {
  GpuState node = Node({1000});
  node.model = 3;
  EXPECT_TRUE(node.Takes({.gpus = 1, .gpu_milli = 500, .models = 0b1010}));
  EXPECT_FALSE(node.Takes({.gpus = 1, .gpu_milli = 500, .models = 0b0111}));
  EXPECT_TRUE(node.Takes({.models = 0b0111}));  // without GPUs any node will do
}

TEST(GpuState, StaysSortedWhenPlaced) {
  GpuState node = Node({1000, 600, 600});
  node.Place({.cpu_milli = 1000, .memory_mib = 1024, .gpus = 1, .gpu_milli = 700}, 0);
  EXPECT_EQ(node, [] {
    GpuState left = Node({600, 600, 300});
    left.cpu_milli = 15'000;
    left.memory_mib = 64'512;
    return left;
  }());
  GpuState whole = Node({1000, 1000, 400});
  whole.Place({.gpus = 2, .gpu_milli = 1000}, 0);
  EXPECT_EQ(whole, Node({400, 0, 0}));
}

TEST(GpuState, ChoicesAreTheDifferentGpusThatSuffice) {
  const GpuState node = Node({1000, 600, 600, 300});
  std::vector<int> seen;
  ForEachChoice(node, {.gpus = 1, .gpu_milli = 500}, [&](int gpu) { seen.push_back(gpu); });
  EXPECT_EQ(seen, (std::vector<int>{0, 2}));
  seen.clear();
  ForEachChoice(node, {.gpus = 1, .gpu_milli = 1000}, [&](int gpu) { seen.push_back(gpu); });
  EXPECT_EQ(seen, (std::vector<int>{0}));
}

}  // namespace
}  // namespace muster::cluster
