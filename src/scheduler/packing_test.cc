#include "scheduler/packing.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "scheduler/node_finder.h"
#include "scheduler/test_cluster.h"

namespace muster::scheduler {
namespace {

constexpr int64_t kGi = int64_t{1} << 30;

cluster::ResourceList Wants(int64_t cpu, int64_t gpus) {
  return {{"cpu", cpu}, {"memory", kGi}, {"nvidia.com/gpu", gpus}};
}

class PackingTest : public ::testing::Test {
 protected:
  void AddNode(const std::string& name, int64_t cpu, int64_t gpus, const std::string& product) {
    cluster::NodeInfo node =
        c_.MakeNode(name, {{"cpu", cpu}, {"memory", 512 * kGi}, {"nvidia.com/gpu", gpus}});
    if (!product.empty()) node.labels["nvidia.com/gpu.product"] = product;
    c_.cache.UpsertNode(std::move(node));
  }
  void AddPodFor(const std::string& name, const std::string& product, int64_t gpus) {
    cluster::PodInfo pod = c_.MakePod(name, Wants(1000, gpus));
    pod.constraints.affinity.selector.push_back({"nvidia.com/gpu.product", product});
    c_.AddPod(std::move(pod));
  }
  std::shared_ptr<const Packing> LearnNow() {
    return Learn(c_.cache.snapshot(), c_.MakeQueue(), packing_);
  }
  // Where the pod would go first without prices.
  std::string PlanPlainly(const std::string& pod) {
    cluster::ClusterSnapshot snapshot = c_.cache.snapshot();
    NodeFinder finder(snapshot);
    return snapshot.Node(finder.Best(c_.cache.FindPod({"default", pod})->shape)).name;
  }
  // Plans as the scheduler does, with what the plan before came to.
  size_t Plan() {
    const size_t placed = c_.Plan();
    c_.config.packing = c_.result.packing;
    return placed;
  }

  TestCluster c_;
  std::shared_ptr<const Packing> packing_;
};

TEST_F(PackingTest, NothingIsLearnedFromFewPodsOrWithoutGpus) {
  AddNode("a", 64'000, 8, "");
  for (size_t i = 0; i + 1 < kLeastGpuPods; ++i) c_.AddPod("p" + std::to_string(i), Wants(1000, 1));
  EXPECT_EQ(LearnNow(), nullptr);
  c_.AddPod("cpu", {{"cpu", 1000}});
  EXPECT_EQ(LearnNow(), nullptr);
  c_.AddPod("last", Wants(1000, 1));
  EXPECT_NE(LearnNow(), nullptr);

  TestCluster without;
  without.AddNodes(3, {{"cpu", 8000}});
  for (int i = 0; i < 20; ++i) without.AddPod("p" + std::to_string(i), Wants(1000, 1));
  EXPECT_EQ(Learn(without.cache.snapshot(), without.MakeQueue(), nullptr), nullptr);
}

TEST_F(PackingTest, IsLearnedAgainWhenAnEighthOfThePodsOrANodeChanged) {
  AddNode("a", 64'000, 8, "H100");
  for (int i = 0; i < 32; ++i) c_.AddPod("p" + std::to_string(i), Wants(1000, 1));
  packing_ = LearnNow();
  ASSERT_NE(packing_, nullptr);
  EXPECT_EQ(packing_->models, std::vector<std::string>{"nvidia.com/gpu=H100"});
  for (int i = 0; i < 4; ++i) c_.AddPod("q" + std::to_string(i), Wants(2000, 2));
  EXPECT_EQ(LearnNow(), packing_);
  c_.AddPod("q4", Wants(2000, 2));
  EXPECT_NE(LearnNow(), packing_);
  packing_ = LearnNow();
  // The same pods, wherever they are: running ones count as waiting ones do.
  Plan();
  EXPECT_EQ(LearnNow(), packing_);
  AddNode("b", 64'000, 8, "H100");
  EXPECT_NE(LearnNow(), packing_);
}

// Pods that name no model leave the scarce one to those that do.
TEST_F(PackingTest, AScarceModelIsLeftToThoseThatNameIt) {
  for (int i = 0; i < 4; ++i) AddNode("a100-" + std::to_string(i), 64'000, 8, "A100");
  for (int i = 0; i < 4; ++i) AddNode("h100-" + std::to_string(i), 60'000, 8, "H100");
  for (int i = 0; i < 24; ++i) AddPodFor("named-" + std::to_string(i), "H100", 1);
  for (int i = 0; i < 24; ++i) c_.AddPod("any-" + std::to_string(i), Wants(1000, 1));
  EXPECT_EQ(PlanPlainly("any-0"), "h100-0");  // the node with less cpu
  EXPECT_EQ(Plan(), 48U);
  for (int i = 0; i < 24; ++i) {
    EXPECT_TRUE(c_.NodeOf("any-" + std::to_string(i)).starts_with("a100")) << i;
  }
}

// Cpu that pods with GPUs need is left to those that need it.
TEST_F(PackingTest, PodsGoWhereTheyTakeAwayTheLeast) {
  for (int i = 0; i < 2; ++i) {
    AddNode("wide-" + std::to_string(i), 28'000, 4, "");
    AddNode("narrow-" + std::to_string(i), 6'000, 8, "");
  }
  for (int i = 0; i < 16; ++i) c_.AddPod("small-" + std::to_string(i), Wants(100, 1));
  for (int i = 0; i < 8; ++i) c_.AddPod("big-" + std::to_string(i), Wants(7000, 1));
  EXPECT_EQ(PlanPlainly("small-0"), "wide-0");  // the node with fewer idle GPUs
  EXPECT_EQ(Plan(), 24U);
}

// The order stays the same whether a heap answers or a pass over all nodes.
TEST_F(PackingTest, TheSameInputGivesTheSamePlan) {
  const auto run = [](size_t batches) {
    TestCluster c;
    for (int i = 0; i < 40; ++i) {
      const int64_t gpus = int64_t{1} << i % 4;
      cluster::NodeInfo node = c.MakeNode(
          "n" + std::to_string(i),
          {{"cpu", 16'000 + 1000 * (i % 7)}, {"memory", 512 * kGi}, {"nvidia.com/gpu", gpus}});
      node.labels["nvidia.com/gpu.product"] = i % 3 == 0 ? "A100" : "T4";
      c.cache.UpsertNode(std::move(node));
    }
    std::string places;
    for (size_t batch = 0; batch < batches; ++batch) {
      for (size_t i = batch; i < 96; i += batches) {
        c.AddPod("p" + std::to_string(i), Wants(1000 + 500 * (i % 5), 1 + i % 3));
      }
      c.Plan();
      c.config.packing = c.result.packing;
    }
    for (int i = 0; i < 96; ++i) places += c.NodeOf("p" + std::to_string(i)) + " ";
    return places;
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_EQ(run(8), run(8));
}

}  // namespace
}  // namespace muster::scheduler
