#include "scheduler/preemption.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "base/seeds_test_support.h"
#include "scheduler/gang_planner.h"
#include "scheduler/test_cluster.h"

namespace muster::scheduler {
namespace {

using Names = std::set<std::string>;
using Outcome = PreemptionPlanner::Outcome;

DisruptionBudget Budget(const std::string& app, int64_t allowed) {
  DisruptionBudget budget;
  budget.ns = "default";
  budget.pods = schema::LabelSelector::Parse("app=" + app).value();
  budget.allowed = allowed;
  return budget;
}

class PreemptionTest : public testing::Test {
 protected:
  void AddLabelled(const std::string& name, const std::string& node, int64_t priority,
                   const std::string& app, int64_t cpu = 1000) {
    cluster::PodInfo pod = c_.MakeRunning(name, node, priority, {{"cpu", cpu}});
    pod.labels = {{"app", app}};
    c_.AddPod(std::move(pod));
  }
  void AddStarted(const std::string& name, const std::string& node, int64_t priority, int started,
                  int64_t cpu = 1000) {
    cluster::PodInfo pod = c_.MakeRunning(name, node, priority, {{"cpu", cpu}});
    pod.started = Time(seconds(started));
    c_.AddPod(std::move(pod));
  }
  void AddMember(const std::string& gang, int index, const std::string& node, int64_t priority,
                 int64_t cpu = 1000) {
    cluster::PodInfo pod =
        c_.MakeRunning(fmt::format("{}-{}", gang, index), node, priority, {{"cpu", cpu}});
    pod.group = gang;
    c_.AddPod(std::move(pod));
  }
  void AddGroup(const std::string& name, int64_t min_member) {
    c_.AddGang(name, min_member, 0, {});
  }

  TestCluster c_;
};

TEST_F(PreemptionTest, EvictsOneOfLowerPriorityAndNobodyElse) {
  c_.AddNodes(1, {{"cpu", 3000}});
  c_.AddRunning("low", "n0", 0, {{"cpu", 1000}});
  c_.AddRunning("equal", "n0", 5, {{"cpu", 1000}});
  c_.AddRunning("high", "n0", 9, {{"cpu", 1000}});
  c_.AddPreemptor("p", 5, {{"cpu", 1000}});
  EXPECT_EQ(c_.Plan(), 0U);
  EXPECT_EQ(c_.VictimsOf("p"), Names{"low"});
  EXPECT_EQ(c_.NominationsOf("p").at("p"), "n0");
}

TEST_F(PreemptionTest, EvictsNobodyWhenThatWouldNotHelp) {
  c_.AddNodes(1, {{"cpu", 3000}});
  c_.AddRunning("low", "n0", 0, {{"cpu", 1000}});
  c_.AddRunning("high", "n0", 9, {{"cpu", 2000}});
  c_.AddPreemptor("p", 5, {{"cpu", 2000}});
  c_.Plan();
  EXPECT_EQ(c_.VictimsOf("p"), Names{});
  EXPECT_EQ(c_.PlanOf("p").room, Outcome::kNoRoom);
}

TEST_F(PreemptionTest, APolicyOfNeverEvictsNobody) {
  c_.AddNodes(1, {{"cpu", 1000}});
  c_.AddRunning("low", "n0", 0, {{"cpu", 1000}});
  cluster::PodInfo pod = c_.MakePod("p", {{"cpu", 1000}});
  pod.priority = 5;
  pod.may_preempt = false;
  c_.AddPod(std::move(pod));
  c_.Plan();
  EXPECT_NE(c_.PlanOf("p").room, Outcome::kRoom);
  // Nor beside one who may.
  c_.AddNodes(1, {{"cpu", 500}});
  c_.AddRunning("lower", "n1", -5, {{"cpu", 500}});
  c_.AddPreemptor("q", -1, {{"cpu", 500}});
  c_.Plan();
  EXPECT_EQ(c_.PlanOf("p").room, Outcome::kNoRoom);
  EXPECT_EQ(c_.VictimsOf("q"), Names{"lower"});
}

TEST_F(PreemptionTest, LeavesNodesAloneThatThePodMayNotUse) {
  cluster::NodeInfo tainted = c_.MakeNode("tainted", {{"cpu", 1000}});
  tainted.taints.push_back({"k", "v", cluster::TaintEffect::kNoSchedule});
  c_.cache.UpsertNode(tainted);
  c_.AddRunning("low", "tainted", 0, {{"cpu", 1000}});
  c_.AddPreemptor("p", 5, {{"cpu", 1000}});
  c_.Plan();
  EXPECT_EQ(c_.VictimsOf("p"), Names{});
}

// Each of the rules by which the node is chosen, with the earlier ones equal.
TEST_F(PreemptionTest, PrefersTheNodeWhereNoBudgetIsViolated) {
  c_.AddNodes(2, {{"cpu", 1000}});
  AddLabelled("guarded", "n0", 0, "a");
  AddLabelled("free", "n1", 4, "b");
  c_.budgets = {Budget("a", 0)};
  c_.AddPreemptor("p", 5, {{"cpu", 1000}});
  c_.Plan();
  EXPECT_EQ(c_.VictimsOf("p"), Names{"free"});
}

TEST_F(PreemptionTest, ThenTheLowestPriorityOfItsMostImportantVictim) {
  c_.AddNodes(2, {{"cpu", 2000}});
  c_.AddRunning("a", "n0", 2, {{"cpu", 2000}});
  c_.AddRunning("b", "n1", 1, {{"cpu", 1000}});
  c_.AddRunning("c", "n1", 1, {{"cpu", 1000}});
  c_.AddPreemptor("p", 5, {{"cpu", 2000}});
  c_.Plan();
  EXPECT_EQ(c_.VictimsOf("p"), (Names{"b", "c"}));
}

TEST_F(PreemptionTest, ThenTheFewestBrokenGangs) {
  c_.AddNodes(2, {{"cpu", 2000}});
  AddGroup("g", 1);
  AddMember("g", 0, "n0", 1, 2000);
  c_.AddRunning("b", "n1", 1, {{"cpu", 1000}});
  c_.AddRunning("c", "n1", 1, {{"cpu", 1000}});
  c_.AddPreemptor("p", 5, {{"cpu", 2000}});
  c_.Plan();
  EXPECT_EQ(c_.VictimsOf("p"), (Names{"b", "c"}));
}

TEST_F(PreemptionTest, ThenTheSmallestSumOfPriorities) {
  c_.AddNodes(2, {{"cpu", 2000}});
  c_.AddRunning("a", "n0", 3, {{"cpu", 1000}});
  c_.AddRunning("b", "n0", 3, {{"cpu", 1000}});
  c_.AddRunning("c", "n1", 3, {{"cpu", 1000}});
  c_.AddRunning("d", "n1", -1, {{"cpu", 1000}});
  c_.AddPreemptor("p", 5, {{"cpu", 2000}});
  c_.Plan();
  EXPECT_EQ(c_.VictimsOf("p"), (Names{"c", "d"}));
}

TEST_F(PreemptionTest, OneVictimOfAPriorityIsLessThanTwo) {
  c_.AddNodes(2, {{"cpu", 2000}});
  c_.AddRunning("a", "n0", -3, {{"cpu", 1000}});
  c_.AddRunning("b", "n0", -3, {{"cpu", 1000}});
  c_.AddRunning("c", "n1", -3, {{"cpu", 2000}});
  c_.AddPreemptor("p", 5, {{"cpu", 2000}});
  c_.Plan();
  EXPECT_EQ(c_.VictimsOf("p"), Names{"c"});
}

TEST_F(PreemptionTest, ThenTheVictimThatStartedLast) {
  c_.AddNodes(2, {{"cpu", 1000}});
  AddStarted("old", "n0", 0, 10);
  AddStarted("young", "n1", 0, 20);
  c_.AddPreemptor("p", 5, {{"cpu", 1000}});
  c_.Plan();
  EXPECT_EQ(c_.VictimsOf("p"), Names{"young"});
}

TEST_F(PreemptionTest, ThenTheFirstNode) {
  c_.AddNodes(2, {{"cpu", 1000}});
  AddStarted("second", "n1", 0, 10);
  AddStarted("first", "n0", 0, 10);
  c_.AddPreemptor("p", 5, {{"cpu", 1000}});
  c_.Plan();
  EXPECT_EQ(c_.VictimsOf("p"), Names{"first"});
}

TEST_F(PreemptionTest, OnANodeTheLessImportantGo) {
  c_.AddNodes(1, {{"cpu", 4000}});
  AddStarted("b-old", "n0", 1, 10);
  AddStarted("a-young", "n0", 1, 30);
  AddStarted("c-younger", "n0", 2, 40);
  AddStarted("oldest", "n0", 1, 5);
  c_.AddPreemptor("p", 5, {{"cpu", 2000}});
  c_.Plan();
  EXPECT_EQ(c_.VictimsOf("p"), (Names{"a-young", "b-old"}));
}

TEST_F(PreemptionTest, ABudgetIsViolatedOnlyWhenNothingElseHelps) {
  c_.AddNodes(1, {{"cpu", 3000}});
  AddLabelled("a-1", "n0", 0, "a");
  AddLabelled("a-2", "n0", 0, "a");
  AddLabelled("b-1", "n0", 1, "b");
  c_.budgets = {Budget("a", 1)};
  c_.AddPreemptor("p", 5, {{"cpu", 2000}});
  c_.Plan();
  // One of a may go, so the other stays although it is less important than b-1.
  EXPECT_EQ(c_.VictimsOf("p"), (Names{"a-1", "b-1"}));
  c_.AddPreemptor("q", 6, {{"cpu", 3000}});
  c_.Remove("p");
  c_.Plan();
  EXPECT_EQ(c_.VictimsOf("q"), (Names{"a-1", "a-2", "b-1"}));
  int violating = 0;
  for (const Victim& victim : c_.PlanOf("q").preemption.victims)
    violating += victim.violates_budget ? 1 : 0;
  EXPECT_EQ(violating, 1);
}

TEST_F(PreemptionTest, VictimsUseUpBudgets) {
  c_.AddNodes(3, {{"cpu", 1000}});
  AddLabelled("a-0", "n0", 0, "a");
  AddLabelled("a-1", "n1", 0, "a");
  AddLabelled("b", "n2", 3, "b");
  c_.budgets = {Budget("a", 1)};
  c_.AddPreemptor("p", 5, {{"cpu", 1000}});
  c_.AddPreemptor("q", 5, {{"cpu", 1000}});
  c_.Plan();
  EXPECT_EQ(c_.VictimsOf("p"), Names{"a-1"});  // the younger one
  EXPECT_EQ(c_.VictimsOf("q"), Names{"b"});
}

TEST_F(PreemptionTest, AnEmptySelectorOfABudgetMeansNobody) {
  c_.AddNodes(2, {{"cpu", 1000}});
  AddLabelled("guarded", "n0", 0, "a");
  AddLabelled("free", "n1", 4, "b");
  c_.budgets = {Budget("a", 0)};
  c_.budgets.front().pods = schema::LabelSelector();
  c_.AddPreemptor("p", 5, {{"cpu", 1000}});
  c_.Plan();
  EXPECT_EQ(c_.VictimsOf("p"), Names{"guarded"});
}

TEST_F(PreemptionTest, AMemberThatItsGangCanSpareGoesAlone) {
  c_.AddNodes(2, {{"cpu", 2000}});
  AddGroup("g", 3);
  for (int i = 0; i < 4; ++i) AddMember("g", i, i < 2 ? "n0" : "n1", 0);
  c_.AddPreemptor("p", 5, {{"cpu", 1000}});
  c_.Plan();
  EXPECT_EQ(c_.VictimsOf("p").size(), 1U);
}

TEST_F(PreemptionTest, AMemberWhoseTaskIsAtItsMinimumStays) {
  c_.AddNodes(1, {{"cpu", 3000}});
  cluster::PodGroupInfo group;
  group.ns = "default";
  group.name = "g";
  group.min_member = 2;
  group.min_task_member = {{"master", 1}};
  c_.cache.UpsertGroup(group);
  for (int i = 0; i < 3; ++i) {
    cluster::PodInfo pod = c_.MakeRunning(fmt::format("g-{}", i), "n0", 0, {{"cpu", 1000}});
    pod.group = "g";
    pod.task = i == 2 ? "master" : "worker";  // the youngest
    c_.AddPod(std::move(pod));
  }
  c_.AddPreemptor("p", 5, {{"cpu", 1000}});
  c_.Plan();
  EXPECT_EQ(c_.VictimsOf("p"), Names{"g-1"});
}

TEST_F(PreemptionTest, AGangThatWouldBeTooSmallGoesWhole) {
  c_.AddNodes(2, {{"cpu", 2000}});
  AddGroup("g", 4);
  for (int i = 0; i < 4; ++i) AddMember("g", i, i < 2 ? "n0" : "n1", 0);
  c_.AddPreemptor("p", 5, {{"cpu", 1000}});
  c_.Plan();
  EXPECT_EQ(c_.VictimsOf("p"), (Names{"g-0", "g-1", "g-2", "g-3"}));
}

// The member that has just been given its place would stay behind.
TEST_F(PreemptionTest, AGangIsNotCompletedAndBrokenByTheSamePlan) {
  c_.AddNodes(2, {{"cpu", 2000}});
  AddGroup("g", 2);
  AddMember("g", 0, "n0", 0, 2000);
  c_.AddRunning("other", "n1", 9, {{"cpu", 1000}});
  c_.AddGangPod("g", "g-1", {{"cpu", 1000}});
  c_.AddPreemptor("p", 5, {{"cpu", 2000}});
  EXPECT_EQ(c_.Plan(), 1U);
  EXPECT_EQ(c_.NodeOf("g-1"), "n1");
  EXPECT_EQ(c_.VictimsOf("p"), Names{});
  EXPECT_TRUE(c_.result.plan_again);
  c_.Plan();
  EXPECT_EQ(c_.VictimsOf("p"), (Names{"g-0", "g-1"}));
}

TEST_F(PreemptionTest, AGangWithAMemberOfHighPriorityStaysWhole) {
  c_.AddNodes(2, {{"cpu", 1000}});
  AddGroup("g", 2);
  AddMember("g", 0, "n0", 0);
  AddMember("g", 1, "n1", 9);
  c_.AddPreemptor("p", 5, {{"cpu", 1000}});
  c_.Plan();
  EXPECT_EQ(c_.PlanOf("p").room, Outcome::kNoRoom);
}

TEST_F(PreemptionTest, TwoPreemptorsUseTheRoomOfOneGang) {
  c_.AddNodes(2, {{"cpu", 1000}});
  AddGroup("g", 2);
  AddMember("g", 0, "n0", 0);
  AddMember("g", 1, "n1", 0);
  c_.AddPreemptor("p", 5, {{"cpu", 1000}});
  c_.AddPreemptor("q", 5, {{"cpu", 1000}});
  c_.Plan();
  EXPECT_EQ(c_.VictimsOf("p"), (Names{"g-0", "g-1"}));
  EXPECT_EQ(c_.VictimsOf("q"), Names{});
  EXPECT_EQ(c_.PlanOf("q").room, Outcome::kRoom);
}

TEST_F(PreemptionTest, AGangEvictsForAllThatItNeedsOrForNone) {
  c_.AddNodes(3, {{"cpu", 1000}});
  for (int i = 0; i < 3; ++i)
    c_.AddRunning(fmt::format("r{}", i), fmt::format("n{}", i), i, {{"cpu", 1000}});
  c_.AddGang("g", 3, 3, {{"cpu", 1000}}, 2);
  c_.Plan();
  EXPECT_EQ(c_.PlanOf("g").room, Outcome::kNoRoom);
  EXPECT_EQ(c_.VictimsOf("g"), Names{});
  c_.AddGang("h", 2, 3, {{"cpu", 1000}}, 2);
  c_.Plan();
  EXPECT_EQ(c_.VictimsOf("h"), (Names{"r0", "r1"}));
  EXPECT_EQ(c_.NominationsOf("h").size(), 2U);
}

// What went for the first pod turns out not to have been needed.
TEST_F(PreemptionTest, AGangSparesAVictimThatALaterOneMadeNeedless) {
  c_.AddNodes(2, {{"cpu", 4000}});
  c_.AddRunning("small", "n0", 0, {{"cpu", 1000}});
  c_.AddRunning("rock", "n0", 9, {{"cpu", 3000}});
  c_.AddRunning("large", "n1", 0, {{"cpu", 4000}});
  c_.AddGang("g", 2, 0, {}, 5);
  c_.AddGangPod("g", "g-0", {{"cpu", 1000}}, 5);
  c_.AddGangPod("g", "g-1", {{"cpu", 2000}}, 5);
  c_.Plan();
  EXPECT_EQ(c_.VictimsOf("g"), Names{"large"});
}

// The one that a budget protects is no reason to leave it behind alone.
TEST_F(PreemptionTest, AMemberIsNotSparedWhileTheRestOfItsGangGoes) {
  c_.AddNodes(1, {{"cpu", 4000}});
  c_.AddNodes(2, {{"cpu", 1000}});
  AddGroup("g", 2);
  for (int i = 0; i < 5; ++i) {
    cluster::PodInfo pod =
        c_.MakeRunning(fmt::format("g-{}", i), i == 2 ? "n1" : "n0", 0, {{"cpu", 1000}});
    pod.group = "g";
    pod.labels = {{"app", i == 3 ? "b" : "a"}};
    c_.AddPod(std::move(pod));
  }
  AddLabelled("x", "n2", 0, "a");
  c_.budgets.push_back(Budget("b", 0));
  c_.AddGang("h", 5, 5, {{"cpu", 1000}}, 5);
  c_.Plan();
  EXPECT_EQ(c_.PlanOf("h").room, Outcome::kRoom);
  EXPECT_EQ(c_.VictimsOf("h"), (Names{"g-0", "g-1", "g-2", "g-3", "g-4"}));
}

TEST_F(PreemptionTest, WaitsForThoseThatLeaveAnyway) {
  c_.AddNodes(2, {{"cpu", 1000}});
  cluster::PodInfo leaving = c_.MakeRunning("leaving", "n1", 9, {{"cpu", 1000}});
  leaving.deleting = true;
  c_.AddPod(std::move(leaving));
  c_.AddRunning("low", "n0", 0, {{"cpu", 1000}});
  c_.AddPreemptor("p", 5, {{"cpu", 1000}});
  EXPECT_EQ(c_.Plan(), 0U);
  EXPECT_EQ(c_.VictimsOf("p"), Names{});
  EXPECT_EQ(c_.NominationsOf("p").at("p"), "n1");
}

TEST_F(PreemptionTest, AnAntiAffineNeighbourGoes) {
  c_.AddNodes(1, {{"cpu", 4000}});
  AddLabelled("near", "n0", 0, "x");
  AddLabelled("other", "n0", 0, "y");
  cluster::PodInfo pod = c_.MakePod("p", {{"cpu", 1000}});
  pod.priority = 5;
  cluster::PodTerm term;
  term.pods.labels = schema::LabelSelector::Parse("app=x").value();
  term.pods.namespaces = {"default"};
  term.topology_key = "kubernetes.io/hostname";
  pod.constraints.relations.anti_affinity.push_back(term);
  c_.AddPod(std::move(pod));
  c_.Plan();
  EXPECT_EQ(c_.VictimsOf("p"), Names{"near"});
}

TEST_F(PreemptionTest, TheRoomOfANomineeIsKeptFromLowerAndEqualPriorities) {
  c_.AddNodes(1, {{"cpu", 2000}});
  cluster::PodInfo leaving = c_.MakeRunning("leaving", "n0", 0, {{"cpu", 1000}});
  leaving.deleting = true;
  c_.AddPod(std::move(leaving));
  // Older than the nominee, so that it comes first in the queue.
  c_.AddPreemptor("equal", 5, {{"cpu", 1000}});
  cluster::PodInfo nominee = c_.MakePod("nominee", {{"cpu", 2000}});
  nominee.priority = 5;
  nominee.nominated_node = "n0";
  c_.AddPod(std::move(nominee));
  c_.AddPreemptor("low", 1, {{"cpu", 1000}});
  EXPECT_EQ(c_.Plan(), 0U);
  EXPECT_EQ(c_.NominationsOf("nominee").at("nominee"), "n0");
  EXPECT_EQ(c_.PlanOf("equal").room, Outcome::kNoRoom);
  EXPECT_EQ(c_.Message("low"),
            "0/1 nodes are available: 1 Insufficient cpu. Waits for 1 cpu: 0 of 2 free (2 held by "
            "pod default/nominee, 1 held by pod default/leaving); fits when pod default/nominee "
            "ends.");
  // One of higher priority takes it.
  c_.AddPreemptor("high", 6, {{"cpu", 1000}});
  EXPECT_EQ(c_.Plan(), 1U);
  EXPECT_EQ(c_.NodeOf("high"), "n0");
  EXPECT_EQ(c_.PlanOf("nominee").room, Outcome::kNoRoom);
  c_.Remove("high");
  c_.Remove("leaving");
  EXPECT_EQ(c_.Plan(), 1U);
  EXPECT_EQ(c_.NodeOf("nominee"), "n0");
}

TEST_F(PreemptionTest, ANomineeThatGoesElsewhereLeavesItsRoomToOthersInTheSamePlan) {
  c_.AddNodes(1, {{"cpu", 1000}});
  c_.AddRunning("rock", "n0", 9, {{"cpu", 500}});
  c_.cache.UpsertNode(c_.MakeNode("big", {{"cpu", 4000}}));
  c_.AddPreemptor("equal", 5, {{"cpu", 500}});
  cluster::PodInfo nominee = c_.MakePod("nominee", {{"cpu", 1000}});
  nominee.priority = 5;
  nominee.nominated_node = "n0";
  c_.AddPod(std::move(nominee));
  c_.AddPreemptor("filler", 5, {{"cpu", 2500}});
  EXPECT_EQ(c_.Plan(), 3U);
}

// Its neighbour was refused because of it, and nothing else need ever happen on the cluster.
TEST_F(PreemptionTest, RoomThatANomineeLosesIsLookedAtAgain) {
  c_.AddNodes(1, {{"cpu", 3000}});
  c_.AddRunning("rock", "n0", 9, {{"cpu", 2000}});
  cluster::PodInfo nominee = c_.MakePod("nominee", {{"cpu", 3000}});
  nominee.priority = 5;
  nominee.nominated_node = "n0";
  c_.AddPod(std::move(nominee));
  c_.AddRunning("low", "n0", 0, {{"cpu", 500}});
  c_.AddPreemptor("small", 4, {{"cpu", 500}});
  EXPECT_EQ(c_.Plan(), 0U);
  EXPECT_EQ(c_.PlanOf("nominee").room, Outcome::kNoRoom);
  EXPECT_TRUE(c_.result.plan_again);
}

TEST_F(PreemptionTest, WhatTheBoundOnWorkCutsOffIsUndecided) {
  c_.AddNodes(4, {{"cpu", 1000}});
  for (int i = 0; i < 4; ++i)
    c_.AddRunning(fmt::format("r{}", i), fmt::format("n{}", i), 0, {{"cpu", 1000}});
  c_.AddPreemptor("p", 5, {{"cpu", 1000}});
  c_.AddPreemptor("q", 4, {{"cpu", 1000}});
  c_.config.max_preemption_work = 2;
  c_.Plan();
  EXPECT_EQ(c_.VictimsOf("p").size(), 1U);
  EXPECT_EQ(c_.PlanOf("q").room, Outcome::kUndecided);
  EXPECT_TRUE(c_.result.plan_again);
}

// -- Random small clusters.

struct Fits {
  explicit Fits(const TestCluster& cluster) : c(cluster) {}
  // The unit fits when these are gone.
  bool Without(const Unit& unit, const std::set<std::string>& gone) const {
    cluster::ClusterSnapshot snapshot = c.cache.snapshot();
    for (const auto& [key, pod] : c.cache.pods()) {
      if (pod.placement != cluster::kNoIndex && gone.contains(key.name))
        snapshot.Remove(pod.placement);
    }
    NodeFinder finder(snapshot);
    return !PlaceGang(unit, finder).placed.empty();
  }
  const TestCluster& c;
};

struct RandomCluster {
  explicit RandomCluster(uint64_t seed) : rng(seed) {
    const int nodes = static_cast<int>(1 + rng.Below(4));
    c.AddNodes(nodes, {{"cpu", 4000}, {"nvidia.com/gpu", 4}});
    for (const char* name : {"g", "h"}) {
      if (rng.Below(2) == 0) {
        gangs[name] = static_cast<int64_t>(1 + rng.Below(4));
        c.AddGang(name, gangs[name], 0, {});
      }
    }
    for (int node = 0; node < nodes; ++node) Fill(fmt::format("n{}", node));
    for (const char* app : {"a", "b"}) {
      if (rng.Below(2) == 0) c.budgets.push_back(Budget(app, static_cast<int64_t>(rng.Below(3))));
    }
  }

  void Fill(const std::string& node) {
    for (int64_t cpu = 4, gpu = 4; cpu > 0;) {
      const int64_t wants_cpu = std::min<int64_t>(cpu, static_cast<int64_t>(1 + rng.Below(2)));
      const int64_t wants_gpu = std::min<int64_t>(gpu, static_cast<int64_t>(rng.Below(3)));
      cpu -= wants_cpu;
      gpu -= wants_gpu;
      if (rng.Below(6) == 0) continue;  // stays free
      cluster::ResourceList requests{{"cpu", wants_cpu * 1000}};
      if (wants_gpu > 0) cluster::AddTo(requests, {{"nvidia.com/gpu", wants_gpu}});
      cluster::PodInfo pod = c.MakeRunning(fmt::format("r{}", count++), node,
                                           static_cast<int64_t>(rng.Below(4)), requests);
      pod.started = Time(seconds(static_cast<int64_t>(rng.Below(5))));
      pod.labels = {{"app", rng.Below(2) == 0 ? "a" : "b"}};
      if (!gangs.empty() && rng.Below(2) == 0)
        pod.group =
            std::next(gangs.begin(), static_cast<ptrdiff_t>(rng.Below(gangs.size())))->first;
      c.AddPod(std::move(pod));
    }
  }

  Rng rng;
  TestCluster c;
  std::map<std::string, int64_t> gangs;  // minMember
  int count = 0;
};

// The victims as units that go together: all of a gang that is left with nobody, else one by one.
std::vector<Names> VictimUnits(const TestCluster& c, const Names& victims) {
  std::map<std::string, Names> of_gangs;
  std::vector<Names> units;
  for (const std::string& name : victims) {
    const cluster::PodRecord& pod = *c.cache.FindPod({"default", name});
    if (pod.info.group.empty()) {
      units.push_back({name});
    } else {
      of_gangs[pod.info.group].insert(name);
    }
  }
  for (const auto& [gang, names] : of_gangs) {
    const int64_t left =
        CountGang(c.cache, {"default", gang}).occupied - static_cast<int64_t>(names.size());
    if (left == 0) {
      units.push_back(names);
    } else {
      for (const std::string& name : names) units.push_back({name});
    }
  }
  return units;
}

// Everybody who may go for a unit of that priority: members of gangs only as far as the gang can
// spare them or can go whole.
Names AllThatMayGo(const RandomCluster& random, int64_t priority) {
  Names out;
  std::map<std::string, std::vector<std::pair<int64_t, std::string>>> of_gangs;
  for (const auto& [key, pod] : random.c.cache.pods()) {
    if (pod.placement == cluster::kNoIndex) continue;
    if (!pod.info.group.empty()) {
      of_gangs[pod.info.group].emplace_back(pod.info.priority, key.name);
    } else if (pod.info.priority < priority) {
      out.insert(key.name);
    }
  }
  for (const auto& [gang, members] : of_gangs) {
    const bool whole = std::all_of(members.begin(), members.end(),
                                   [&](const auto& member) { return member.first < priority; });
    if (!whole) continue;
    for (const auto& [of, name] : members) out.insert(name);
  }
  return out;
}

void CheckVictims(const RandomCluster& random, const Unit& unit) {
  const TestCluster& c = random.c;
  const Fits fits(c);
  const Names victims = c.VictimsOf(unit.name);
  if (c.PlanOf(unit.name).room != Outcome::kRoom) {
    EXPECT_EQ(victims, Names{});
    EXPECT_FALSE(fits.Without(unit, AllThatMayGo(random, unit.priority)));
    return;
  }
  EXPECT_TRUE(fits.Without(unit, victims));
  for (const Names& spared : VictimUnits(c, victims)) {
    Names others = victims;
    for (const std::string& name : spared) others.erase(name);
    EXPECT_FALSE(fits.Without(unit, others)) << *spared.begin() << " went for nothing";
  }
  std::map<std::string, int64_t> gone;
  for (const std::string& name : victims) {
    const cluster::PodFacts& info = c.cache.FindPod({"default", name})->info;
    EXPECT_LT(info.priority, unit.priority) << name;
    if (!info.group.empty()) ++gone[info.group];
  }
  for (const auto& [gang, count] : gone) {
    const int64_t left = CountGang(c.cache, {"default", gang}).occupied - count;
    EXPECT_TRUE(left == 0 || left >= random.gangs.at(gang)) << gang << " is left with " << left;
  }
}

TEST(PreemptionProperty, VictimsSufficeAreNeededAndMayGo) {
  std::map<std::string, int> seen;
  for (uint64_t seed = 1; seed <= SeedsOf(3000); ++seed) {
    SCOPED_TRACE(seed);
    RandomCluster random(seed);
    TestCluster& c = random.c;
    const auto priority = static_cast<int64_t>(random.rng.Below(5));
    cluster::ResourceList requests{{"cpu", static_cast<int64_t>(1 + random.rng.Below(4)) * 1000}};
    const auto gpus = static_cast<int64_t>(random.rng.Below(4));
    if (gpus > 0) cluster::AddTo(requests, {{"nvidia.com/gpu", gpus}});
    const bool is_gang = random.rng.Below(2) == 0;
    if (is_gang) {
      const int pods = static_cast<int>(1 + random.rng.Below(4));
      c.AddGang("p", static_cast<int64_t>(1 + random.rng.Below(static_cast<uint64_t>(pods))), pods,
                requests, priority);
    } else {
      c.AddPreemptor("p", priority, requests);
    }
    const size_t before = c.cache.snapshot().placement_slots();
    if (c.Plan() > 0) {
      // Members beyond the minimum may evict, too, one by one.
      const bool whole = c.MakeQueue().empty();
      EXPECT_TRUE(!whole || c.VictimsOf("p").empty());
      ++seen[whole ? "fits" : "fits in part"];
      continue;
    }
    EXPECT_EQ(c.cache.snapshot().placement_slots(), before);
    CheckVictims(random, c.queue.front());
    const size_t victims = c.VictimsOf("p").size();
    ++seen[victims == 0 ? "no room" : victims == 1 ? "one victim" : "victims"];
    if (testing::Test::HasFailure()) return;
  }
  for (const char* what : {"fits", "no room", "one victim", "victims"})
    EXPECT_GT(seen[what], SeedsOf(100)) << what;
}

// Pods of one size, so that only how many of whom go matters.
TEST(PreemptionProperty, ViolationsAreTheFewestPossible) {
  int violated = 0;
  for (uint64_t seed = 1; seed <= SeedsOf(500); ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    TestCluster c;
    c.AddNodes(3, {{"cpu", 5000}});
    std::map<std::string, int64_t> allowed{{"a", rng.Below(3)}, {"b", rng.Below(3)}};
    std::map<std::string, std::map<std::string, int64_t>> lower;  // by node and app
    for (int i = 0; i < 15; ++i) {
      const std::string node = fmt::format("n{}", i % 3);
      cluster::PodInfo pod = c.MakeRunning(fmt::format("r{}", i), node,
                                           static_cast<int64_t>(rng.Below(3)), {{"cpu", 1000}});
      const std::string app = std::string(1, static_cast<char>('a' + rng.Below(3)));
      pod.labels = {{"app", app}};
      if (pod.priority < 2) ++lower[node][app];
      c.AddPod(std::move(pod));
    }
    for (const auto& [app, count] : allowed) c.budgets.push_back(Budget(app, count));
    const auto wanted = static_cast<int64_t>(1 + rng.Below(4));
    c.AddPreemptor("p", 2, {{"cpu", wanted * 1000}});
    c.Plan();
    int64_t fewest = INT64_MAX;
    for (const auto& [node, apps] : lower) {
      int64_t total = 0;
      int64_t harmless = 0;
      for (const auto& [app, count] : apps) {
        total += count;
        harmless += allowed.contains(app) ? std::min(count, allowed[app]) : count;
      }
      if (total >= wanted) fewest = std::min(fewest, std::max<int64_t>(wanted - harmless, 0));
    }
    if (fewest == INT64_MAX) {
      EXPECT_EQ(c.PlanOf("p").room, Outcome::kNoRoom);
      continue;
    }
    int64_t violations = 0;
    for (const Victim& victim : c.PlanOf("p").preemption.victims)
      violations += victim.violates_budget ? 1 : 0;
    EXPECT_EQ(violations, fewest);
    if (fewest > 0) ++violated;
  }
  EXPECT_GT(violated, 20);
}

}  // namespace
}  // namespace muster::scheduler
