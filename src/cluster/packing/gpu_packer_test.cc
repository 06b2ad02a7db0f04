#include "cluster/packing/gpu_packer.h"

#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace muster::cluster {
namespace {

GpuState Node(int gpus, uint8_t model = 0, int cores_per_gpu = 10) {
  GpuState node{.cpu_milli = gpus * cores_per_gpu * 1000, .memory_mib = gpus * 65'536};
  node.model = model;
  node.gpus = static_cast<uint8_t>(gpus);
  for (int i = 0; i < gpus; ++i) node.free_milli[i] = kWholeGpu;
  return node;
}
GpuAsk Ask(int gpus, int milli = kWholeGpu, uint32_t models = 0) {
  return {.cpu_milli = 1000,
          .memory_mib = 1024,
          .gpus = static_cast<int16_t>(gpus),
          .gpu_milli = static_cast<int16_t>(milli),
          .models = models};
}

// Places the pods in this order; how many found no node.
int Arrive(GpuPacker& packer, const std::vector<GpuAsk>& pods, Rng* ties = nullptr) {
  int failed = 0;
  for (const GpuAsk& pod : pods) {
    packer.Arrived(pod);
    const auto spot = packer.Choose(pod, ties);
    if (spot) {
      packer.Place(pod, *spot);
    } else {
      ++failed;
    }
  }
  return failed;
}

std::vector<GpuAsk> Mixed(std::vector<std::pair<GpuAsk, int>> kinds, uint64_t seed) {
  std::vector<GpuAsk> pods;
  for (const auto& [ask, count] : kinds) pods.insert(pods.end(), static_cast<size_t>(count), ask);
  Rng rng(seed);
  for (size_t i = pods.size(); i > 1; --i) std::swap(pods[i - 1], pods[rng.Below(i)]);
  return pods;
}

TEST(GpuPacker, NoNodeTakesWhatIsTooLarge) {
  GpuPacker packer({Node(4), Node(2)});
  EXPECT_FALSE(packer.Choose(Ask(8)).has_value());
  ASSERT_TRUE(packer.Choose(Ask(3)).has_value());
  EXPECT_EQ(packer.Choose(Ask(3))->node, 0U);
}

// What fits exactly is placed, in any order; and a pod of all GPUs of a node, which nobody has seen
// before, still finds one in nine of ten orders.
TEST(GpuPacker, FillsExactlyWhatFitsExactly) {
  // 20 GPUs of pairs 700 + 300, 12 whole ones, one pod of 8: all of five nodes of 8.
  int kept = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    GpuPacker packer(std::vector<GpuState>(5, Node(8)));
    const auto pods = Mixed({{Ask(1, 700), 20}, {Ask(1, 300), 20}, {Ask(1), 12}}, seed);
    EXPECT_EQ(Arrive(packer, pods), 0) << seed;
    if (Arrive(packer, {Ask(8)}) == 0) ++kept;
  }
  EXPECT_GE(kept, 9);
}

TEST(GpuPacker, LeavesModelsToPodsThatNameThem) {
  std::vector<GpuState> nodes(10, Node(4, 0));
  nodes.insert(nodes.end(), 10, Node(4, 1, 40));  // more cpu: tempting
  GpuPacker packer(nodes);
  EXPECT_EQ(Arrive(packer, Mixed({{Ask(1), 40}, {Ask(1, kWholeGpu, 0b10), 36}}, 3)), 0);
}

TEST(GpuPacker, TheSameCallsGiveTheSameChoices) {
  const auto pods = Mixed({{Ask(1, 700), 50}, {Ask(1, 300), 50}, {Ask(2), 20}, {Ask(0, 0), 20}}, 5);
  std::vector<GpuState> ends[2];
  for (auto& end : ends) {
    GpuPacker packer(std::vector<GpuState>(16, Node(8)));
    Rng ties(9);
    Arrive(packer, pods, &ties);
    for (size_t node = 0; node < packer.size(); ++node) end.push_back(packer.At(node));
  }
  EXPECT_EQ(ends[0], ends[1]);
}

TEST(GpuPacker, MoreKindsOfPodsThanItRemembers) {
  GpuPacker packer(std::vector<GpuState>(2, Node(8, 0, 1000)));
  for (int i = 0; i < 5000; ++i) {
    GpuAsk ask = Ask(1, 10);
    ask.memory_mib = i;
    ASSERT_TRUE(packer.Choose(ask).has_value());
  }
}

}  // namespace
}  // namespace muster::cluster
