#include "scheduler/gang_planner.h"

#include <gtest/gtest.h>

#include "scheduler/test_cluster.h"

namespace muster::scheduler {
namespace {

const cluster::ResourceList kOneGpu = {{"nvidia.com/gpu", 1}};
const cluster::ResourceList kFourGpus = {{"nvidia.com/gpu", 4}};

TEST(GangPlanner, PlacesAllPodsOfAGangThatFits) {
  TestCluster c;
  c.AddNodes(2, kFourGpus);
  c.AddGang("g", 6, 6, kOneGpu);
  EXPECT_EQ(c.Plan(), 6u);
  EXPECT_TRUE(c.pending.empty());
}

TEST(GangPlanner, PlacesNothingWhenOnePodDoesNotFit) {
  TestCluster c;
  c.AddNodes(1, kFourGpus);
  c.AddGang("g", 5, 5, kOneGpu);
  EXPECT_EQ(c.Plan(), 0u);
  EXPECT_EQ(c.WhyNot("g").pods_fitting, 4);
}

TEST(GangPlanner, ARefusedGangLeavesTheSnapshotAsItWas) {
  TestCluster c;
  c.AddNodes(2, kFourGpus);
  c.AddPod("other", kOneGpu);
  c.Plan();
  c.AddGang("g", 9, 9, kOneGpu);
  cluster::ClusterSnapshot snapshot = c.cache.snapshot();
  NodeFinder finder(snapshot);
  EXPECT_TRUE(PlaceGang(c.MakeQueue().front(), finder).placed.empty());
  for (cluster::NodeIndex node = 0; node < snapshot.node_slots(); ++node) {
    EXPECT_EQ(snapshot.FreeDevices(node), c.cache.snapshot().FreeDevices(node));
    for (cluster::ResourceIndex resource = 0; resource < snapshot.resource_count(); ++resource) {
      EXPECT_EQ(snapshot.Free(node, resource), c.cache.snapshot().Free(node, resource));
    }
  }
}

TEST(GangPlanner, PlacesAtLeastTheMinimumAndAsManyAsFit) {
  TestCluster c;
  c.AddNodes(1, kFourGpus);
  c.AddGang("g", 2, 6, kOneGpu);
  EXPECT_EQ(c.Plan(), 4u);
  EXPECT_EQ(c.pending.size(), 2u);
  EXPECT_EQ(c.WhyNot("g").pods_waiting, 2);
}

TEST(GangPlanner, NeighbouringRanksBecomeNeighbours) {
  TestCluster c;
  c.AddNodes(3, kFourGpus);
  c.AddGang("g", 12, 0, {});
  for (int i = 11; i >= 0; --i) {
    cluster::PodInfo pod = c.MakePod("g-worker-" + std::to_string(i), kOneGpu);
    pod.group = "g";
    pod.created = Time(seconds(5));
    c.AddPod(pod);
  }
  EXPECT_EQ(c.Plan(), 12u);
  for (int i = 0; i < 12; ++i)
    EXPECT_EQ(c.NodeOf("g-worker-" + std::to_string(i)), "n" + std::to_string(i / 4));
}

TEST(GangPlanner, WaitsWhileMembersAreMissing) {
  TestCluster c;
  c.AddNodes(2, kFourGpus);
  c.AddGang("g", 4, 1, kOneGpu);
  EXPECT_EQ(c.Plan(), 0u);
  EXPECT_EQ(c.Message("g"), "1/4 pods of the gang exist: gang g waits for 3 more.");
  for (int i = 1; i < 4; ++i) c.AddGangPod("g", "g-" + std::to_string(i), kOneGpu);
  EXPECT_EQ(c.Plan(), 4u);
}

TEST(GangPlanner, WaitsForAPodGroupThatDoesNotExist) {
  TestCluster c;
  c.AddNodes(1, kFourGpus);
  c.AddGangPod("g", "g-0", kOneGpu);
  EXPECT_EQ(c.Plan(), 0u);
  EXPECT_EQ(c.Message("g"),
            "PodGroup \"g\", to which the pod says it belongs, does not exist in its namespace.");
}

TEST(GangPlanner, TellsAGangThatIsLargerThanTheClusterAtOnce) {
  TestCluster c;
  c.AddNodes(1, kFourGpus);
  c.AddGang("huge", 10, 10, kOneGpu);
  c.Plan();
  EXPECT_EQ(c.WhyNot("huge").why, Infeasible::Why::kNeverFits);
  EXPECT_EQ(c.Message("huge"),
            "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. gang huge: 10 pods x 1 "
            "nvidia.com/gpu need 10 at "
            "once, the cluster offers 4; it does not fit even an empty cluster: it needs 6 more "
            "nvidia.com/gpu, as of 2 more nodes like n0 (4 GPU Simulated).");
}

TEST(GangPlanner, LowerUnitsMayGoWhileAGangWaits) {
  TestCluster c;
  c.AddNodes(1, kFourGpus);
  c.AddGang("a", 3, 3, kOneGpu);
  EXPECT_EQ(c.Plan(), 3u);
  c.AddGang("b", 4, 4, kOneGpu);
  c.AddPod("c", kOneGpu);
  EXPECT_EQ(c.Plan(), 1u);
  EXPECT_EQ(c.NodeOf("c"), "n0");
  for (const char* pod : {"a-0", "a-1", "a-2", "c"}) c.Remove(pod);
  EXPECT_EQ(c.Plan(), 4u);
}

TEST(GangPlanner, MembersThatRunAlreadyCountTowardsTheMinimum) {
  TestCluster c;
  c.AddNodes(1, kFourGpus);
  c.AddGang("g", 4, 4, kOneGpu);
  EXPECT_EQ(c.Plan(), 4u);
  c.Remove("g-2");
  c.AddGangPod("g", "g-2", kOneGpu);
  EXPECT_EQ(c.Plan(), 1u);
}

TEST(GangPlanner, AnInterruptedGangIsCompletedBeforeAnythingElse) {
  TestCluster c;
  c.AddNodes(1, kFourGpus);
  c.AddGang("g", 4, 4, kOneGpu);
  EXPECT_EQ(c.Plan(), 4u);
  c.Remove("g-2");
  c.AddGangPod("g", "g-2", kOneGpu);
  cluster::PodInfo urgent = c.MakePod("urgent", kOneGpu);
  urgent.priority = 1000;
  c.AddPod(urgent);
  EXPECT_EQ(c.Plan(), 1u);
  EXPECT_EQ(c.NodeOf("g-2"), "n0");
  EXPECT_EQ(c.NodeOf("urgent"), "");
}

TEST(GangPlanner, FailedAndTerminatingPodsAreNoMembers) {
  TestCluster c;
  c.AddNodes(1, kFourGpus);
  c.AddGang("g", 2, 1, kOneGpu);
  cluster::PodInfo failed = c.MakePod("g-failed", kOneGpu);
  failed.group = "g";
  failed.phase = cluster::PodPhase::kFailed;
  c.cache.UpsertPod(failed);
  cluster::PodInfo leaving = c.MakePod("g-leaving", kOneGpu);
  leaving.group = "g";
  leaving.deleting = true;
  c.cache.UpsertPod(leaving);
  EXPECT_EQ(c.Plan(), 0u);
  EXPECT_EQ(c.WhyNot("g").members, 1);
}

TEST(GangPlanner, GangsOfDifferentShapesAreAtomicToo) {
  TestCluster c;
  c.AddNodes(2, kFourGpus);
  c.AddGang("g", 3, 0, {});
  c.AddGangPod("g", "master", {{"nvidia.com/gpu", 4}});
  c.AddGangPod("g", "w-0", {{"nvidia.com/gpu", 3}});
  c.AddGangPod("g", "w-1", {{"nvidia.com/gpu", 2}});
  EXPECT_EQ(c.Plan(), 0u);
  EXPECT_EQ(c.WhyNot("g").wanted, 9);
  c.AddNodes(1, kFourGpus);
  EXPECT_EQ(c.Plan(), 3u);
}

// -- Minima of tasks.

void RequireTasks(TestCluster& c, const std::string& gang,
                  std::vector<cluster::TaskMinimum> minima) {
  c.ChangeGroup(gang, [&](cluster::PodGroupInfo& group) { group.min_task_member = minima; });
}

TEST(GangTasks, AreAllThereOrNone) {
  TestCluster c;
  c.AddNodes(1, kFourGpus);
  c.AddGang("g", 3, 0, {});
  RequireTasks(c, "g", {{"ps", 1}, {"worker", 2}});
  for (int i = 0; i < 4; ++i)
    c.AddGangPod("g", "g-worker-" + std::to_string(i), kOneGpu, 0, "worker");
  c.AddGangPod("g", "g-ps-0", kOneGpu, 0, "ps");
  // In the order of creation the workers would take all there is.
  EXPECT_EQ(c.Plan(), 4u);
  EXPECT_EQ(c.NodeOf("g-ps-0"), "n0");
  EXPECT_EQ(c.NodeOf("g-worker-0"), "n0");
  EXPECT_EQ(c.NodeOf("g-worker-3"), "");
}

TEST(GangTasks, ATaskWithoutItsPodsHoldsTheGangAndIsNamed) {
  TestCluster c;
  c.AddNodes(2, kFourGpus);
  c.AddGang("g", 3, 0, {});
  RequireTasks(c, "g", {{"ps", 2}, {"worker", 1}});
  for (int i = 0; i < 3; ++i)
    c.AddGangPod("g", "g-worker-" + std::to_string(i), kOneGpu, 0, "worker");
  EXPECT_EQ(c.Plan(), 0u);
  EXPECT_EQ(c.Message("g"),
            "0/2 pods of task ps exist: gang g waits for 2 more. No pod of it has the annotation "
            "volcano.sh/task-spec: ps.");
  EXPECT_EQ(ToJson(c.WhyNot("g")).Path({"gang", "task", "name"}).AsString(), "ps");
  c.AddGangPod("g", "g-ps-0", kOneGpu, 0, "ps");
  EXPECT_EQ(c.Plan(), 0u);
  EXPECT_EQ(c.Message("g"), "1/2 pods of task ps exist: gang g waits for 1 more.");
  c.AddGangPod("g", "g-ps-1", kOneGpu, 0, "ps");
  EXPECT_EQ(c.Plan(), 5u);
}

TEST(GangTasks, AGangThatLostATaskIsCompletedByThatTask) {
  TestCluster c;
  c.AddNodes(1, kFourGpus);
  c.AddGang("g", 2, 0, {});
  RequireTasks(c, "g", {{"ps", 1}, {"worker", 1}});
  c.AddGangPod("g", "g-ps-0", kOneGpu, 0, "ps");
  for (int i = 0; i < 2; ++i)
    c.AddGangPod("g", "g-worker-" + std::to_string(i), kOneGpu, 0, "worker");
  EXPECT_EQ(c.Plan(), 3u);
  c.Remove("g-ps-0");
  c.AddPod("other", kOneGpu);
  EXPECT_EQ(c.Plan(), 1u);
  // One place is left. Two workers run, which is minMember; without the ps a third is no use.
  c.AddGangPod("g", "g-worker-2", kOneGpu, 0, "worker");
  c.AddGangPod("g", "g-ps-0", kOneGpu, 0, "ps");
  EXPECT_TRUE(c.MakeQueue().front().IsCompleting());
  EXPECT_EQ(c.Plan(), 1u);
  EXPECT_EQ(c.NodeOf("g-ps-0"), "n0");
}

// -- Elastic gangs.

TEST(GangPlanner, WhatIsAboveTheMinimumComesAsThereIsRoom) {
  TestCluster c;
  c.AddNodes(1, kFourGpus);
  c.AddPod("other", {{"nvidia.com/gpu", 3}});
  c.Plan();
  c.AddGang("g", 2, 5, kOneGpu);
  EXPECT_EQ(c.Plan(), 0u);  // one would fit, two are the minimum
  c.Remove("other");
  EXPECT_EQ(c.Plan(), 4u);
  EXPECT_EQ(c.WhyNot("g").started_with, 4);
  EXPECT_EQ(
      c.Message("g"),
      "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. gang g has started with 4 pods "
      "(at least 2); 1 more wait for 1 nvidia.com/gpu each: 0 of 4 free (4 held by pytorchjob "
      "default/g).");
  c.AddNodes(1, kOneGpu);
  EXPECT_EQ(c.Plan(), 1u);
}

// -- minResources.

void RequireResources(TestCluster& c, const std::string& gang, const cluster::ResourceList& wants) {
  c.ChangeGroup(gang, [&](cluster::PodGroupInfo& group) { group.min_resources = wants; });
}

TEST(MinResources, HoldTheGangUntilTheyAreFreeInSum) {
  TestCluster c;
  c.AddNodes(2, kFourGpus);
  c.AddPod("other", {{"nvidia.com/gpu", 2}});
  c.Plan();
  c.AddGang("g", 2, 2, kOneGpu);
  RequireResources(c, "g", {{"nvidia.com/gpu", 7}});
  EXPECT_EQ(c.Plan(), 0u);
  EXPECT_EQ(c.WhyNot("g").why, Infeasible::Why::kNoFit);
  EXPECT_EQ(c.Message("g"),
            "gang g: its minResources want 7 nvidia.com/gpu, 6 of 8 free (2 held by pod "
            "default/other); fits when pod default/other ends.");
  c.Remove("other");
  EXPECT_EQ(c.Plan(), 2u);
}

TEST(MinResources, ThatTheClusterNeverHasAreToldAtOnce) {
  TestCluster c;
  c.AddNodes(2, kFourGpus);
  c.AddGang("g", 1, 1, kOneGpu);
  RequireResources(c, "g", {{"nvidia.com/gpu", 9}});
  c.AddGang("h", 1, 1, kOneGpu);
  RequireResources(c, "h", {{"example.com/unheard-of", cluster::kMaxAmount}});
  EXPECT_EQ(c.Plan(), 0u);
  EXPECT_EQ(c.WhyNot("g").why, Infeasible::Why::kNeverFits);
  EXPECT_EQ(c.Message("g"),
            "gang g: its minResources want 9 nvidia.com/gpu, the cluster offers 8; it is not tried "
            "before there are more nodes.");
  EXPECT_EQ(c.WhyNot("h").why, Infeasible::Why::kNeverFits);
}

TEST(MinResources, AreLookedAtBeforeAGangStartsOnly) {
  TestCluster c;
  c.AddNodes(1, kFourGpus);
  c.AddGang("g", 1, 3, kOneGpu);
  RequireResources(c, "g", {{"nvidia.com/gpu", 4}});
  EXPECT_EQ(c.Plan(), 3u);
  c.Remove("g-2");
  c.AddGangPod("g", "g-2", kOneGpu);
  EXPECT_EQ(c.Plan(), 1u);
}

// -- Pods that differ: which of them, and in which order.

TEST(GangSearch, ChoosesThePodsThatFit) {
  TestCluster c;
  c.AddNodes(1, kFourGpus);
  c.AddGang("g", 3, 0, {});
  c.AddGangPod("g", "large", {{"nvidia.com/gpu", 3}});
  for (int i = 0; i < 3; ++i) c.AddGangPod("g", "small-" + std::to_string(i), kOneGpu);
  EXPECT_EQ(c.Plan(), 3u);
  EXPECT_EQ(c.NodeOf("large"), "");
}

TEST(GangSearch, PlacesTheHardestFirst) {
  TestCluster c;
  c.AddNodes(2, kFourGpus);
  c.AddGang("g", 4, 0, {});
  for (int i = 0; i < 2; ++i) c.AddGangPod("g", "small-" + std::to_string(i), kOneGpu);
  for (int i = 0; i < 2; ++i)
    c.AddGangPod("g", "large-" + std::to_string(i), {{"nvidia.com/gpu", 3}});
  EXPECT_EQ(c.Plan(), 4u);
}

TEST(GangSearch, FindsWhatNoOrderOfBestFitsFinds) {
  // 10 = 5+3+2 and 4+4+2. From the hardest on it is 5+4 and 4+3+2, with a 2 left.
  TestCluster c;
  c.AddNodes(2, {{"nvidia.com/gpu", 10}});
  c.AddGang("g", 6, 0, {});
  for (const int64_t gpus : {5, 4, 4, 3, 2, 2})
    c.AddGangPod("g", "p" + std::to_string(c.pending.size()), {{"nvidia.com/gpu", gpus}});
  EXPECT_EQ(c.Plan(), 6u);
}

TEST(GangSearch, EndsAtItsBoundAndIsNotTakenForAProof) {
  TestCluster c;
  // Sums and sizes say yes, the pieces say no: 40 nodes of 5 for 50 pods of 3 or of 4.
  for (int i = 0; i < 40; ++i)
    c.AddNodes(1, {{"nvidia.com/gpu", 5}, {"cpu", 1000 + i}, {"memory", 1 << 20}});
  c.AddGang("g", 50, 0, {});
  for (int i = 0; i < 50; ++i)
    c.AddGangPod("g", "p" + std::to_string(i), {{"nvidia.com/gpu", 3 + i % 2}});
  cluster::ClusterSnapshot snapshot = c.cache.snapshot();
  NodeFinder finder(snapshot);
  SearchBudget budget;
  const GangAttempt attempt = PlaceGang(c.MakeQueue().front(), finder, budget);
  EXPECT_TRUE(attempt.placed.empty());
  for (cluster::NodeIndex node = 0; node < snapshot.node_slots(); ++node)
    EXPECT_EQ(snapshot.FreeDevices(node).Count(), 5);
}

TEST(GangSearch, ManyPodsThatDifferAreTriedInTheSimpleOrdersOnly) {
  TestCluster c;
  c.AddNodes(1, {{"nvidia.com/gpu", 8}});
  c.AddGang("g", static_cast<int64_t>(kMaxSearchedPods), 0, {});
  for (size_t i = 0; i <= kMaxSearchedPods; ++i)
    c.AddGangPod("g", "p" + std::to_string(i), {{"cpu", static_cast<int64_t>(i % 2)}});
  c.AddNodes(1, {{"cpu", 300}, {"pods", static_cast<int64_t>(kMaxSearchedPods)}});
  cluster::ClusterSnapshot snapshot = c.cache.snapshot();
  NodeFinder finder(snapshot);
  SearchBudget budget;
  const GangAttempt attempt = PlaceGang(c.MakeQueue().front(), finder, budget);
  EXPECT_FALSE(attempt.placed.empty());
  EXPECT_GT(budget.looks_left, kMaxSearchLooks - 100);
}

TEST(Queue, PriorityClassOfThePodGroupDecides) {
  TestCluster c;
  c.AddNodes(1, kFourGpus);
  c.AddGang("low", 4, 4, kOneGpu, /*priority=*/5);
  c.AddGang("high", 4, 4, kOneGpu, /*priority=*/0);
  cluster::PodGroupInfo group = *c.cache.FindGroup({"default", "high"})->info();
  group.priority_class = "urgent";
  c.cache.UpsertGroup(group);
  const Queue queue = BuildQueue(c.cache, c.pending, {{"urgent", 100}}, {});
  const PlanResult plan = Plan(c.cache.snapshot(), queue, {}, Time{});
  EXPECT_EQ(queue[plan.units[0].unit].name, "high");
  EXPECT_EQ(plan.units[0].assignments.size(), 4u);
}

TEST(Queue, LeavesOutUnitsThatBackOff) {
  TestCluster c;
  c.AddPod("a", kOneGpu);
  c.AddGang("g", 1, 2, kOneGpu);
  EXPECT_EQ(c.MakeQueue().size(), 2u);
  EXPECT_EQ(BuildQueue(c.cache, c.pending, {}, {{true, {"default", "g"}}}).size(), 1u);
}

}  // namespace
}  // namespace muster::scheduler
