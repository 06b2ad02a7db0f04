#include "scheduler/sub_groups.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "json/parse.h"
#include "scheduler/test_cluster.h"

namespace muster::scheduler {
namespace {

const cluster::ResourceList kOneGpu = {{"nvidia.com/gpu", 1}};
const cluster::ResourceList kFourGpus = {{"nvidia.com/gpu", 4}};

cluster::SubGroupPolicy Policy(const std::string& name, int64_t size, int64_t min_sub_groups) {
  cluster::SubGroupPolicy policy;
  policy.name = name;
  policy.size = size;
  policy.min_sub_groups = min_sub_groups;
  policy.keys = {"block"};
  return policy;
}

// Gangs whose pods carry the label `block`.
struct Blocks : TestCluster {
  void AddGangOf(const std::string& name, int64_t min_member,
                 std::vector<cluster::SubGroupPolicy> policies) {
    AddGang(name, min_member, 0, {});
    ChangeGroup(name, [&](cluster::PodGroupInfo& group) { group.sub_group_policies = policies; });
  }
  // Pods GANG-BLOCK-0, ...
  void AddBlock(const std::string& gang, const std::string& block, int pods,
                const cluster::ResourceList& requests = kOneGpu, const std::string& node = "") {
    for (int i = 0; i < pods; ++i) {
      const std::string name = gang + "-" + block + "-" + std::to_string(i);
      cluster::PodInfo pod =
          node.empty() ? MakePod(name, requests) : MakeRunning(name, node, 0, requests);
      pod.group = gang;
      pod.holder = "pytorchjob default/" + gang;
      pod.priority = priority;
      if (!block.empty()) pod.labels = {{"block", block}};
      AddPod(std::move(pod));
    }
  }
  // How many of the block's pods were placed by plans.
  int Placed(const std::string& gang, const std::string& block, int pods) const {
    int placed = 0;
    for (int i = 0; i < pods; ++i)
      placed += NodeOf(gang + "-" + block + "-" + std::to_string(i)).empty() ? 0 : 1;
    return placed;
  }
  int64_t priority = 0;
};

TEST(SubGroups, ArePlacedWholeOrNotAtAll) {
  Blocks c;
  c.AddNodes(1, {{"nvidia.com/gpu", 6}});
  c.AddGangOf("g", 1, {Policy("blocks", 4, 0)});
  c.AddBlock("g", "a", 4);
  c.AddBlock("g", "b", 4);
  EXPECT_EQ(c.Plan(), 4u);
  EXPECT_EQ(c.Placed("g", "a", 4), 4);
  EXPECT_EQ(c.Message("g"),
            "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. gang g has started with 4 "
            "pods (at least 1); 4 more wait for 1 nvidia.com/gpu each: 2 of 6 free (4 held by "
            "pytorchjob default/g). 0 of 1 sub-groups of policy blocks fit.");
  EXPECT_EQ(c.Plan(), 0u);
  c.AddNodes(1, {{"nvidia.com/gpu", 2}});
  EXPECT_EQ(c.Plan(), 4u);
  EXPECT_EQ(c.Placed("g", "b", 4), 4);
}

TEST(SubGroups, AGangWaitsForItsMinimumOfThem) {
  Blocks c;
  c.AddNodes(1, {{"nvidia.com/gpu", 6}});
  c.AddGangOf("g", 1, {Policy("blocks", 4, 2)});
  c.AddBlock("g", "a", 4);
  c.AddBlock("g", "b", 4);
  EXPECT_EQ(c.Plan(), 0u);
  const Infeasible why = c.WhyNot("g");
  EXPECT_EQ(why.pods_needed, 8);
  EXPECT_EQ(why.sub_groups, (Infeasible::OpenSubGroups{"blocks", false, "", 1, 2}));
  EXPECT_TRUE(c.Message("g").ends_with(" 1 of 2 sub-groups of policy blocks fit."));
  c.AddNodes(1, {{"nvidia.com/gpu", 2}});
  EXPECT_EQ(c.Plan(), 8u);
}

TEST(SubGroups, OneThatLacksPodsWaitsAndIsNamed) {
  Blocks c;
  c.AddNodes(2, kFourGpus);
  c.AddGangOf("g", 1, {Policy("blocks", 4, 2)});
  c.AddBlock("g", "a", 4);
  EXPECT_EQ(c.Plan(), 0u);
  EXPECT_EQ(c.Message("g"), "1/2 sub-groups of policy blocks exist: gang g waits for 1 more.");
  c.AddBlock("g", "b", 3);
  EXPECT_EQ(c.Plan(), 0u);
  EXPECT_EQ(c.Message("g"),
            "3/4 pods of sub-group b of policy blocks exist: gang g waits for 1 more.");
  EXPECT_EQ(ToJson(c.WhyNot("g")).Path({"gang", "subGroups", "name"}).AsString(), "b");
  c.ChangeGroup("g", [](auto& group) { group.sub_group_policies[0].min_sub_groups = 1; });
  EXPECT_EQ(c.Plan(), 4u);
  EXPECT_EQ(c.Plan(), 0u);
  EXPECT_EQ(c.Message("g"),
            "3/4 pods of sub-group b of policy blocks exist: gang g waits for 1 more.");
}

TEST(SubGroups, PodsThatLackItCountForNothing) {
  Blocks c;
  c.AddNodes(2, kFourGpus);
  c.AddGangOf("g", 5, {Policy("blocks", 4, 0)});
  c.AddBlock("g", "a", 4);
  c.AddBlock("g", "b", 3);
  EXPECT_EQ(c.Plan(), 0u);  // 7 exist, 4 of them could be placed
  c.AddBlock("g", "", 1);
  EXPECT_EQ(c.Plan(), 5u);
}

TEST(SubGroups, WhatIsAboveTheSizeIsElastic) {
  Blocks c;
  c.AddNodes(1, kFourGpus);
  c.AddGangOf("g", 1, {Policy("blocks", 2, 0)});
  c.AddBlock("g", "a", 3);
  c.AddBlock("g", "b", 2);
  EXPECT_EQ(c.Plan(), 4u);
  EXPECT_EQ(c.Placed("g", "a", 3), 2);
  EXPECT_EQ(c.Placed("g", "b", 2), 2);
  c.AddNodes(1, kOneGpu);
  EXPECT_EQ(c.Plan(), 1u);
}

TEST(SubGroups, TheOneThatFitsIsFound) {
  Blocks c;
  c.AddNodes(1, kFourGpus);
  c.AddGangOf("g", 4, {Policy("blocks", 2, 0)});
  c.AddBlock("g", "a", 2, {{"nvidia.com/gpu", 2}});  // takes all, and is too few pods
  c.AddBlock("g", "b", 2);
  c.AddBlock("g", "c", 2);
  EXPECT_EQ(c.Plan(), 4u);
  EXPECT_EQ(c.Placed("g", "a", 2), 0);
}

TEST(SubGroups, ABegunOneIsCompletedBeforeAnythingElse) {
  Blocks c;
  c.AddNodes(1, kFourGpus);
  c.AddGangOf("g", 1, {Policy("blocks", 2, 0)});
  c.AddBlock("g", "a", 2);
  EXPECT_EQ(c.Plan(), 2u);
  c.Remove("g-a-1");
  c.AddRunning("other", "n0", 0, {{"nvidia.com/gpu", 1}});
  c.AddBlock("g", "b", 2);
  c.AddPreemptor("urgent", 1000, {{"nvidia.com/gpu", 2}});
  cluster::PodInfo again = c.MakePod("g-a-1", kOneGpu);
  again.group = "g";
  again.labels = {{"block", "a"}};
  c.AddPod(again);
  c.config.explain = false;
  EXPECT_EQ(c.Plan(), 1u);  // two are free: urgent would fit, or block b
  EXPECT_EQ(c.NodeOf("g-a-1"), "n0");
  EXPECT_EQ(c.NodeOf("urgent"), "");
  EXPECT_EQ(c.Placed("g", "b", 2), 0);
}

TEST(SubGroups, AreOfTheFirstPolicyThatSelectsAPodWithAllItsLabels) {
  const cluster::PodGroupInfo group = cluster::ToPodGroupInfo(
      *json::Parse(R"({"metadata": {"namespace": "d", "name": "g"}, "spec": {"subGroupPolicy": [
        {"name": "ps", "subGroupSize": 2, "minSubGroups": 1, "matchLabelKeys": ["x", "y"],
         "labelSelector": {"matchLabels": {"role": "ps"}}},
        {"name": "all"}]}})"),
      cluster::GroupApi::kVolcano);
  const std::vector<cluster::SubGroupPolicy>& policies = group.sub_group_policies;
  ASSERT_EQ(policies.size(), 2u);
  EXPECT_EQ(policies[1].size, 1);
  SubGroups groups(policies);
  const size_t both = groups.Of(policies, {{"role", "ps"}, {"x", "1"}, {"y", "2"}});
  EXPECT_EQ(groups.groups[both].name, "1/2");
  EXPECT_EQ(groups.groups[both].size, 2);
  EXPECT_EQ(groups.Of(policies, {{"role", "ps"}, {"x", "1"}, {"y", "2"}, {"z", "3"}}), both);
  EXPECT_EQ(groups.Of(policies, {{"role", "ps"}, {"x", "1"}}), kNoSubGroup);
  EXPECT_EQ(groups.Of(policies, {{"role", "ps"}, {"x", ""}, {"y", "2"}}), kNoSubGroup);
  const size_t rest = groups.Of(policies, {{"x", "1"}, {"y", "2"}});
  EXPECT_EQ(groups.groups[rest].policy, 1u);
  EXPECT_EQ(groups.Of(policies, {}), rest);
}

// -- Who has to go.

TEST(SubGroups, GoAsAWholeWhereTheGangCanDoWithoutThem) {
  Blocks c;
  c.AddNodes(2, kFourGpus);
  c.AddGangOf("g", 2, {Policy("blocks", 2, 1)});
  c.AddBlock("g", "a", 2, {{"nvidia.com/gpu", 2}}, "n0");
  c.AddBlock("g", "b", 1, {{"nvidia.com/gpu", 4}}, "n1");
  c.AddRunning("keeps", "n1", 9, {{"cpu", 0}});
  cluster::PodInfo far = c.MakeRunning("g-b-1", "n1", 0, {});
  far.group = "g";
  far.labels = {{"block", "b"}};
  c.AddPod(far);
  c.AddPreemptor("urgent", 5, {{"nvidia.com/gpu", 1}});
  c.Plan();
  const std::set<std::string> victims = c.VictimsOf("urgent");
  EXPECT_TRUE(victims == (std::set<std::string>{"g-a-0", "g-a-1"}) ||
              victims == (std::set<std::string>{"g-b-0", "g-b-1"}));
}

TEST(SubGroups, BelowTheirMinimumTheWholeGangGoes) {
  Blocks c;
  c.AddNodes(2, kFourGpus);
  c.AddGangOf("g", 2, {Policy("blocks", 2, 2)});
  c.AddBlock("g", "a", 2, {{"nvidia.com/gpu", 2}}, "n0");
  c.AddBlock("g", "b", 2, {{"nvidia.com/gpu", 2}}, "n1");
  c.AddPreemptor("urgent", 5, {{"nvidia.com/gpu", 1}});
  c.Plan();
  EXPECT_EQ(c.VictimsOf("urgent"), (std::set<std::string>{"g-a-0", "g-a-1", "g-b-0", "g-b-1"}));
}

TEST(SubGroups, APodAboveTheSizeGoesAlone) {
  Blocks c;
  c.AddNodes(1, kFourGpus);
  c.AddGangOf("g", 2, {Policy("blocks", 2, 1)});
  c.AddBlock("g", "a", 4, kOneGpu, "n0");
  c.AddPreemptor("urgent", 5, kOneGpu);
  c.Plan();
  EXPECT_EQ(c.VictimsOf("urgent").size(), 1u);
}

TEST(SubGroups, OneThatGoesTakesItsElasticPodsAlong) {
  Blocks c;
  c.AddNodes(1, kFourGpus);
  c.AddNodes(1, {{"nvidia.com/gpu", 2}});
  c.AddGangOf("g", 2, {Policy("blocks", 2, 1)});
  c.AddBlock("g", "a", 3, kOneGpu, "n0");
  c.AddBlock("g", "b", 2, kOneGpu, "n1");
  c.AddPreemptor("urgent", 5, {{"nvidia.com/gpu", 3}});
  c.Plan();
  EXPECT_EQ(c.VictimsOf("urgent"), (std::set<std::string>{"g-a-0", "g-a-1", "g-a-2"}));
}

TEST(SubGroups, RoomIsMadeForAWholeOne) {
  Blocks c;
  c.AddNodes(1, kFourGpus);
  for (const char* pod : {"x", "y", "z"}) c.AddRunning(pod, "n0", 0, kOneGpu);
  c.priority = 5;
  c.AddGangOf("g", 1, {Policy("blocks", 2, 1)});
  c.AddBlock("g", "a", 2);
  c.AddBlock("g", "b", 1);
  EXPECT_EQ(c.Plan(), 0u);
  EXPECT_EQ(c.VictimsOf("g").size(), 1u);
  EXPECT_EQ(c.NominationsOf("g").size(), 2u);
  EXPECT_FALSE(c.NominationsOf("g").contains("g-b-0"));
}

}  // namespace
}  // namespace muster::scheduler
