// Pods that share a GPU (muster.dev/gpu-milli), from what they ask for to the device that they get.

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "base/seeds_test_support.h"
#include "scheduler/node_finder.h"
#include "scheduler/test_cluster.h"

namespace muster::scheduler {
namespace {

const std::string kShare(cluster::resource::kGpuMilli);
const std::string kGpu(cluster::resource::kNvidiaGpu);

class GpuSharesTest : public ::testing::Test {
 protected:
  void AddNode(const std::string& name, int64_t gpus) {
    cluster::NodeInfo node =
        c_.MakeNode(name, {{"cpu", 64'000}, {kGpu, gpus}, {kShare, 1000 * gpus}});
    std::erase_if(node.devices, [](const auto& device) { return device.resource != kGpu; });
    c_.cache.UpsertNode(std::move(node));
  }
  void AddShare(const std::string& name, int64_t milli) {
    c_.AddPod(name, {{"cpu", 100}, {kShare, milli}});
  }
  TestCluster c_;
};

TEST_F(GpuSharesTest, SharesFillAGpuBeforeTheyOpenAnother) {
  AddNode("a", 2);
  for (int i = 0; i < 3; ++i) AddShare("s" + std::to_string(i), 300);
  EXPECT_EQ(c_.Plan(), 3U);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(c_.DevicesOf("s" + std::to_string(i)), std::vector<size_t>{0});
  // 100 are left of the first: 200 more open the second, which no pod gets whole then.
  AddShare("more", 200);
  EXPECT_EQ(c_.Plan(), 1U);
  EXPECT_EQ(c_.DevicesOf("more"), std::vector<size_t>{1});
  c_.AddPod("whole", {{kGpu, 1}});
  EXPECT_EQ(c_.Plan(), 0U);
  EXPECT_EQ(c_.Message("whole"),
            "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. Waits for 1 nvidia.com/gpu: 0 "
            "of 2 free (2 shared by pod default/s0 (300m), pod default/s1 (300m), pod default/s2 "
            "(300m), pod default/more (200m)); fits when pod default/more ends.");
  c_.Remove("more");
  EXPECT_EQ(c_.Plan(), 1U);
  EXPECT_EQ(c_.DevicesOf("whole"), std::vector<size_t>{1});
}

TEST_F(GpuSharesTest, NoMoreThanAWholeGpuIsGivenAway) {
  AddNode("a", 1);
  AddShare("s0", 600);
  AddShare("s1", 600);
  AddShare("s2", 400);
  EXPECT_EQ(c_.Plan(), 2U);
  EXPECT_EQ(c_.NodeOf("s1"), "");
  EXPECT_TRUE(
      c_.Message("s1").starts_with("0/1 nodes are available: 1 Insufficient muster.dev/gpu-milli."))
      << c_.Message("s1");
  c_.Remove("s0");
  EXPECT_EQ(c_.Plan(), 1U);
}

TEST_F(GpuSharesTest, WhatNoGpuCanGiveFitsNowhere) {
  AddNode("a", 4);
  AddShare("two-gpus", 2000);
  c_.AddPod("both", {{kGpu, 1}, {kShare, 100}});
  EXPECT_EQ(c_.Plan(), 0U);
  EXPECT_EQ(c_.WhyNot("two-gpus").why, Infeasible::Why::kNeverFits) << c_.Message("two-gpus");
  for (const char* pod : {"two-gpus", "both"}) {
    EXPECT_TRUE(c_.Message(pod).ends_with(
        " It does not fit even an empty cluster: muster.dev/gpu-milli is a share of one GPU: at "
        "most 1000 in all containers of a pod, and no nvidia.com/gpu beside it."))
        << c_.Message(pod);
  }
  EXPECT_EQ(c_.WhyNot("both").why, Infeasible::Why::kNeverFits) << c_.Message("both");
}

TEST_F(GpuSharesTest, NodesThatOfferNoSharesTakeNone) {
  c_.AddNodes(1, {{"cpu", 8000}, {kGpu, 4}});
  AddShare("s", 100);
  EXPECT_EQ(c_.Plan(), 0U);
}

// A pod that wants no GPU goes where the fewest whole ones are free, whatever is left of shared
// ones, and whatever is counted in bytes.
TEST_F(GpuSharesTest, OtherPodsGoWhereTheFewestWholeGpusAreFree) {
  AddNode("shared", 1);
  AddShare("s", 100);
  EXPECT_EQ(c_.Plan(), 1U);
  AddNode("used", 1);
  c_.AddRunning("whole", "used", 0, {{"cpu", 100}, {kGpu, 1}});
  c_.AddPod("same-devices", {{"cpu", 100}});
  EXPECT_EQ(c_.Plan(), 1U);
  EXPECT_EQ(c_.NodeOf("same-devices"), "shared");  // as full as the other, and the first
  // Three whole GPUs of a node that offers no shares are more than none.
  c_.cache.UpsertNode(c_.MakeNode("no-shares", {{"cpu", 1000}, {kGpu, 3}}));
  c_.AddPod("fewest-devices", {{"cpu", 100}});
  EXPECT_EQ(c_.Plan(), 1U);
  EXPECT_EQ(c_.NodeOf("fewest-devices"), "shared");
}

TEST_F(GpuSharesTest, MemoryInHugePagesIsNoDevice) {
  for (const auto& [name, gpus, bytes] :
       {std::tuple("hugepages", 1, 1 << 30), std::tuple("gpus", 2, 0)}) {
    cluster::NodeInfo node = c_.MakeNode(name, {{"cpu", 64'000}, {kGpu, gpus}});
    cluster::AddTo(node.allocatable, {{"hugepages-2Mi", bytes}});
    c_.cache.UpsertNode(std::move(node));
  }
  c_.AddPod("p", {{"cpu", 100}});
  EXPECT_EQ(c_.Plan(), 1U);
  EXPECT_EQ(c_.NodeOf("p"), "hugepages");
}

TEST_F(GpuSharesTest, WhoWaitsForWholeGpusIsToldWhoSharesThem) {
  AddNode("a", 4);
  c_.AddPod("holds", {{kGpu, 2}});
  for (const auto& [name, milli] : {std::pair("b", 300), {"c", 500}}) AddShare(name, milli);
  EXPECT_EQ(c_.Plan(), 3U);
  c_.AddPod("whole", {{kGpu, 2}});
  EXPECT_EQ(c_.Plan(), 0U);
  EXPECT_EQ(c_.Message("whole"),
            "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. Waits for 2 nvidia.com/gpu: 1 "
            "of 4 free (2 held by pod default/holds, 1 shared by pod default/c (500m), pod "
            "default/b (300m)); fits when pod default/holds ends.");
  const json::Value shared = ToJson(c_.WhyNot("whole"))["sharedGpus"];
  EXPECT_EQ(shared["gpus"].AsInt(), 1);
  EXPECT_EQ(shared["sharers"].AsInt(), 2);
  EXPECT_EQ(shared["sharedBy"].At(0)["holder"].AsString(), "pod default/c");
  EXPECT_EQ(shared["sharedBy"].At(0)["milli"].AsInt(), 500);
  // A shared GPU is free once all who share it are gone.
  c_.Remove("whole");
  c_.Remove("holds");
  c_.AddPod("all", {{kGpu, 4}});
  EXPECT_EQ(c_.Plan(), 0U);
  EXPECT_TRUE(c_.Message("all").ends_with("; fits when pod default/b and pod default/c end.") ||
              c_.Message("all").ends_with("; fits when pod default/c and pod default/b end."))
      << c_.Message("all");
}

TEST_F(GpuSharesTest, NoMoreSharersAreNamedThanFitASentence) {
  AddNode("a", 1);
  const auto sharers = static_cast<int>(kMaxHoldersNamed) + 2;
  for (int i = 0; i < sharers; ++i) AddShare("s" + std::to_string(i), 100);
  c_.AddPod("whole", {{kGpu, 1}});
  c_.Plan();
  EXPECT_NE(c_.Message("whole").find(" (100m) and 2 others)"), std::string::npos)
      << c_.Message("whole");
}

// A second scheduler gave a GPU away twice: what is too much of it holds nothing, and no more is
// given.
TEST_F(GpuSharesTest, WhatAnotherSchedulerGaveAwayTwiceIsSeen) {
  AddNode("a", 2);
  for (int i = 0; i < 2; ++i) {
    cluster::PodInfo pod = c_.MakePod("foreign-" + std::to_string(i), {{kShare, 700}});
    pod.node_name = "a";
    pod.assigned_devices = {{"main", {{kGpu, {kGpu + "-0"}}}}};
    c_.AddPod(std::move(pod));
  }
  const cluster::ClusterSnapshot& snapshot = c_.cache.snapshot();
  ASSERT_EQ(snapshot.GpusLeft(0).size(), 2U);
  EXPECT_EQ(snapshot.GpusLeft(0)[0].milli, 300);
  EXPECT_EQ(snapshot.GpusLeft(0)[1].milli, 1000);
}

// A pod that was bound with nodeName gets its GPU on the node: one of those that look free is its.
TEST_F(GpuSharesTest, WhatPodsHoldThatDidNotComeThroughUsIsNotShared) {
  AddNode("a", 2);
  cluster::PodInfo pod = c_.MakePod("foreign", {{kGpu, 1}});
  pod.node_name = "a";
  c_.AddPod(std::move(pod));
  AddShare("s0", 600);
  AddShare("s1", 600);
  EXPECT_EQ(c_.Plan(), 1U);
  c_.AddPod("whole", {{kGpu, 1}});
  EXPECT_EQ(c_.Plan(), 0U);
  c_.Remove("foreign");
  EXPECT_EQ(c_.Plan(), 1U);
  EXPECT_EQ(c_.cache.snapshot().Free(0, c_.cache.snapshot().FindResource(kGpu)), 0);
}

// Against plain bookkeeping: who has which GPU, and how much of it.
TEST_F(GpuSharesTest, RandomPodsComeAndGo) {
  int64_t shared = 0;
  for (uint64_t seed = 0; seed < SeedsOf(10'000); ++seed) {
    Rng rng(seed);
    c_ = TestCluster();
    c_.config.explain = false;
    // Most are so small that a few pods fill them.
    const bool small = seed % 32 != 0;
    const int nodes = small ? 1 : 1 + static_cast<int>(rng.Below(3));
    for (int i = 0; i < nodes; ++i)
      AddNode("n" + std::to_string(i), 1 + static_cast<int64_t>(rng.Below(small ? 2 : 4)));
    std::map<std::string, int64_t> asked;  // of a GPU, in thousandths; by pod
    const int steps = small ? 6 : 40;
    for (int step = 0; step < steps; ++step) {
      const std::string name = "p" + std::to_string(step);
      if (rng.Below(3) == 0 && !asked.empty()) {
        const auto gone = std::next(asked.begin(), static_cast<ptrdiff_t>(rng.Below(asked.size())));
        c_.Remove(gone->first);
        asked.erase(gone);
      } else if (rng.Below(3) == 0) {
        c_.AddPod(name, {{kGpu, 1}});
        asked[name] = 1000;
      } else {
        AddShare(name, asked[name] = 100 * (1 + static_cast<int64_t>(rng.Below(10))));
      }
      c_.Plan();
      ASSERT_EQ(c_.refused, 0U);

      std::map<std::pair<std::string, size_t>, int64_t> given;
      for (const auto& [pod, milli] : asked) {
        if (c_.NodeOf(pod).empty()) continue;
        ASSERT_EQ(c_.DevicesOf(pod).size(), 1U);
        given[{c_.NodeOf(pod), c_.DevicesOf(pod).front()}] += milli;
      }
      std::map<int64_t, int64_t> left;  // by how much: GPUs
      const cluster::ClusterSnapshot& snapshot = c_.cache.snapshot();
      for (cluster::NodeIndex node = 0; node < snapshot.node_slots(); ++node) {
        for (const auto& gpu : snapshot.GpusLeft(node)) {
          const int64_t used = given[{snapshot.Node(node).name, gpu.device}];
          ASSERT_LE(used, 1000);
          ASSERT_EQ(gpu.milli, 1000 - used);
          ++left[gpu.milli];
          shared += used > 0 && used < 1000 ? 1 : 0;
        }
      }
      // Nobody waits who fits.
      for (const auto& [pod, milli] : asked) {
        if (!c_.NodeOf(pod).empty()) continue;
        ASSERT_LT(left.empty() ? 0 : left.rbegin()->first, milli);
      }
    }
  }
  EXPECT_GT(shared, 1000);
}

}  // namespace
}  // namespace muster::scheduler
