#include "scheduler/explain.h"

#include <gtest/gtest.h>

#include "scheduler/test_cluster.h"

namespace muster::scheduler {
namespace {

const cluster::ResourceList kOneGpu = {{"nvidia.com/gpu", 1}};

TEST(Explain, SortsReasonsAsKubeSchedulerDoes) {
  TestCluster c;
  for (int i = 0; i < 5; ++i) {
    cluster::NodeInfo node = c.MakeNode("n" + std::to_string(i), {{"cpu", 4000}});
    if (i < 2) node.taints = {{"k", "v", cluster::TaintEffect::kNoSchedule}};
    c.cache.UpsertNode(node);
  }
  c.AddPod("p", kOneGpu);
  c.Plan();
  EXPECT_EQ(NodesAvailableText(c.WhyNot("p")),
            "0/5 nodes are available: 2 node(s) had untolerated taint {k: v}, 3 Insufficient "
            "nvidia.com/gpu.");
}

TEST(Explain, AGangReadsWhoHoldsWhatItNeeds) {
  TestCluster c;
  c.AddNodes(1, {{"nvidia.com/gpu", 4}});
  c.AddGang("a", 3, 3, kOneGpu);
  c.Plan();
  c.AddGang("b", 4, 4, kOneGpu);
  c.Plan();
  EXPECT_EQ(c.Message("b"),
            "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. gang b: 4 pods x 1 "
            "nvidia.com/gpu need 4 at once, 1 "
            "of 4 free (3 held by pytorchjob default/a); fits when pytorchjob default/a ends.");
  c.AddPod("c", kOneGpu);
  c.Plan();
  EXPECT_EQ(c.Message("b"),
            "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. gang b: 4 pods x 1 "
            "nvidia.com/gpu need 4 at once, 0 "
            "of 4 free (3 held by pytorchjob default/a, 1 held by pod default/c); fits when "
            "pytorchjob default/a and pod "
            "default/c end.");
}

TEST(Explain, APodReadsWhoseEndLetsItRun) {
  TestCluster c;
  c.AddNodes(1, {{"nvidia.com/gpu", 4}});
  c.AddGang("a", 3, 3, kOneGpu);
  c.Plan();
  c.AddPod("p", {{"nvidia.com/gpu", 4}});
  c.Plan();
  EXPECT_EQ(c.Message("p"),
            "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. Waits for 4 nvidia.com/gpu: 1 "
            "of 4 free (3 held by "
            "pytorchjob default/a); fits when pytorchjob default/a ends.");
}

TEST(Explain, SaysWhenWhatIsFreeIsInTooSmallPieces) {
  TestCluster c;
  c.AddNodes(2, {{"nvidia.com/gpu", 4}});
  c.AddPod("x", {{"nvidia.com/gpu", 3}});
  c.AddPod("y", {{"nvidia.com/gpu", 3}});
  c.Plan();
  c.AddPod("p", {{"nvidia.com/gpu", 2}});
  c.Plan();
  EXPECT_EQ(c.Message("p"),
            "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. Waits for 2 nvidia.com/gpu: 2 "
            "of 8 free (3 held by "
            "pod default/x, 3 held by pod default/y), at most 1 on one node; fits when pod "
            "default/y ends.");
  c.Remove("p");
  c.AddGang("g", 2, 2, {{"nvidia.com/gpu", 1}, {"cpu", 0}});
  EXPECT_EQ(c.Plan(), 2u);
}

TEST(Explain, SaysWhenNothingThatEndsWouldHelp) {
  TestCluster c;
  c.AddNodes(2, {{"cpu", 4000}});
  c.AddPod("p", {{"cpu", 6000}});
  c.Plan();
  EXPECT_EQ(c.Message("p"),
            "0/2 nodes are available: 2 Insufficient cpu. It does not fit even an empty cluster: "
            "no node that passes its "
            "rules offers 6 cpu.");
}

TEST(Explain, SaysWhenNoNodePassesTheRules) {
  TestCluster c;
  c.AddNodes(2, {{"cpu", 4000}});
  cluster::PodInfo pod = c.MakePod("p", {{"cpu", 1000}});
  pod.constraints.affinity.selector = {{"zone", "nowhere"}};
  c.AddPod(pod);
  c.Plan();
  EXPECT_EQ(c.Message("p"),
            "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector. It does "
            "not fit even an empty "
            "cluster: no node passes its rules.");
}

TEST(Explain, WritesBytesAndCoresAsQuantities) {
  TestCluster c;
  c.AddNodes(1, {{"cpu", 4000}, {"memory", int64_t{8} << 30}});
  c.AddPod("x", {{"memory", int64_t{6} << 30}});
  c.Plan();
  c.AddPod("p", {{"memory", int64_t{4} << 30}});
  c.Plan();
  EXPECT_EQ(c.Message("p"),
            "0/1 nodes are available: 1 Insufficient memory. Waits for 4Gi memory: 2Gi of 8Gi free "
            "(6Gi held by pod "
            "default/x); fits when pod default/x ends.");
}

TEST(Explain, NamesFewHoldersAndCountsTheRest) {
  TestCluster c;
  c.AddNodes(1, {{"nvidia.com/gpu", 8}});
  for (int i = 0; i < 8; ++i) c.AddPod("x" + std::to_string(i), kOneGpu);
  c.Plan();
  c.AddPod("p", kOneGpu);
  c.Plan();
  EXPECT_NE(c.Message("p").find(", the rest by 3 others)"), std::string::npos) << c.Message("p");
  EXPECT_EQ(c.WhyNot("p").holders.size(), 8u);
}

TEST(Explain, APartlyPlacedGangSaysWhatTheRestWaitsFor) {
  TestCluster c;
  c.AddNodes(1, {{"nvidia.com/gpu", 4}});
  c.AddGang("g", 2, 6, kOneGpu);
  EXPECT_EQ(c.Plan(), 4u);
  EXPECT_EQ(
      c.Message("g"),
      "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. gang g has started with 4 pods "
      "(at least 2); 2 more wait for 1 nvidia.com/gpu each: 0 of 4 free (4 held by pytorchjob "
      "default/g).");
}

TEST(Explain, IsReadableByPrograms) {
  TestCluster c;
  c.AddNodes(1, {{"nvidia.com/gpu", 4}});
  c.AddGang("a", 3, 3, kOneGpu);
  c.Plan();
  c.AddGang("b", 4, 4, kOneGpu);
  c.Plan();
  const json::Value facts = ToJson(c.WhyNot("b"));
  EXPECT_EQ(facts["why"].AsString(), "NoFit");
  EXPECT_EQ(facts["gang"]["podsNeeded"].AsInt(), 4);
  EXPECT_EQ(facts["gang"]["podsFitting"].AsInt(), 1);
  EXPECT_EQ(facts["resource"]["name"].AsString(), "nvidia.com/gpu");
  EXPECT_EQ(facts["resource"]["free"].AsString(), "1");
  EXPECT_EQ(facts["fitsWhenTheseEnd"].At(0)["holder"].AsString(), "pytorchjob default/a");
  EXPECT_EQ(facts["failedByRule"].At(0)["nodes"].AsInt(), 1);
  EXPECT_EQ(facts["message"].AsString(), c.Message("b"));
}

TEST(Explain, StopsSearchingWhenTheWorkIsUsedUp) {
  TestCluster c;
  c.config.max_unblock_work = 0;
  c.AddNodes(1, {{"nvidia.com/gpu", 4}});
  c.AddPod("x", {{"nvidia.com/gpu", 4}});
  c.Plan();
  c.AddPod("p", kOneGpu);
  c.Plan();
  EXPECT_TRUE(c.WhyNot("p").unblocked_by.empty());
  EXPECT_EQ(c.WhyNot("p").holders.size(), 1u);
}

}  // namespace
}  // namespace muster::scheduler
