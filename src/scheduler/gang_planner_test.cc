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
  EXPECT_EQ(
      c.Message("huge"),
      "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. gang huge: 10 pods x 1 "
      "nvidia.com/gpu need 10 at "
      "once, the cluster offers 4; it does not fit even an empty cluster, it needs more nodes.");
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

TEST(Queue, PriorityClassOfThePodGroupDecides) {
  TestCluster c;
  c.AddNodes(1, kFourGpus);
  c.AddGang("low", 4, 4, kOneGpu, /*priority=*/5);
  c.AddGang("high", 4, 4, kOneGpu, /*priority=*/0);
  cluster::PodGroupInfo group = *c.cache.FindGroup({"default", "high"})->info;
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
