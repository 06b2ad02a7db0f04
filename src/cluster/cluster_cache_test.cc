#include "cluster/cluster_cache.h"

#include <gtest/gtest.h>

namespace muster::cluster {
namespace {

constexpr int64_t kGi = int64_t{1} << 30;

NodeInfo MakeNode(const std::string& name, int64_t gpus = 4) {
  NodeInfo node;
  node.name = name;
  node.uid = "uid-" + name;
  node.hostname = name;
  node.has_hostname = true;
  node.allocatable = {{"cpu", 8000}, {"memory", 32 * kGi}, {"nvidia.com/gpu", gpus}, {"pods", 110}};
  for (int64_t i = 0; i < gpus; ++i)
    node.devices.push_back({"nvidia.com/gpu", "g" + std::to_string(i), i, "M"});
  return node;
}

PodInfo MakePod(const std::string& name, int64_t gpus = 1) {
  PodInfo pod;
  pod.ns = "d";
  pod.name = name;
  pod.uid = "uid-" + name;
  pod.holder = "pod d/" + name;
  pod.constraints.requests = {{"cpu", 1000}, {"nvidia.com/gpu", gpus}, {"pods", 1}};
  return pod;
}

PodInfo Bound(PodInfo pod, const std::string& node, std::vector<std::string> ids) {
  pod.node_name = node;
  if (!ids.empty()) pod.assigned_devices = {{"main", {{"nvidia.com/gpu", std::move(ids)}}}};
  return pod;
}

class CacheTest : public testing::Test {
 protected:
  int64_t FreeGpus(const std::string& node) {
    const ClusterSnapshot& snapshot = cache_.snapshot();
    return snapshot.Free(cache_.FindNode(node), snapshot.FindResource("nvidia.com/gpu"));
  }
  std::vector<size_t> FreeDevices(const std::string& node) {
    return cache_.snapshot().FreeDevices(cache_.FindNode(node)).Positions();
  }
  ClusterCache cache_;
};

TEST_F(CacheTest, CountsABoundPodWhicheverComesFirst) {
  cache_.UpsertPod(Bound(MakePod("early"), "n1", {"g0"}));
  cache_.UpsertNode(MakeNode("n1"));
  EXPECT_EQ(FreeGpus("n1"), 3);
  cache_.UpsertPod(Bound(MakePod("late"), "n1", {"g2"}));
  EXPECT_EQ(FreeGpus("n1"), 2);
  EXPECT_EQ(FreeDevices("n1"), (std::vector<size_t>{1, 3}));
}

TEST_F(CacheTest, KnowsWhoIsPlacedWhere) {
  cache_.UpsertNode(MakeNode("n1"));
  EXPECT_EQ(cache_.LowestPlacedPriority(), INT64_MAX);
  PodInfo pod = Bound(MakePod("p"), "n1", {"g0"});
  pod.priority = 3;
  cache_.UpsertPod(pod);
  const PlacementIndex at = cache_.FindPod({"d", "p"})->placement;
  const PlacedPod placed = cache_.placed_pods()[at];
  EXPECT_EQ(placed.priority, 3);
  EXPECT_FALSE(placed.leaving);
  EXPECT_EQ(cache_.LowestPlacedPriority(), 3);
  EXPECT_EQ(cache_.FindPlaced(at, placed.serial)->info.name, "p");

  pod.started = Time(seconds(5));
  cache_.UpsertPod(pod);
  EXPECT_EQ(cache_.placed_pods()[at].started, Time(seconds(5)));
  pod.deleting = true;
  cache_.UpsertPod(pod);
  EXPECT_TRUE(cache_.placed_pods()[cache_.FindPod({"d", "p"})->placement].leaving);

  // Another one in its slot is not taken for it.
  cache_.RemovePod({"d", "p"});
  cache_.UpsertPod(Bound(MakePod("q"), "n1", {"g0"}));
  EXPECT_EQ(cache_.FindPod({"d", "q"})->placement, at);
  EXPECT_EQ(cache_.FindPlaced(at, placed.serial), nullptr);
  EXPECT_EQ(cache_.LowestPlacedPriority(), 0);
}

// Pods that look at others may fit when others come, change or begin to go.
TEST_F(CacheTest, SaysWhenPodsThatLookAtOthersMayFit) {
  cache_.UpsertNode(MakeNode("n1"));
  PodInfo other = Bound(MakePod("other"), "n1", {});
  EXPECT_FALSE(cache_.UpsertPod(other).capacity_grew) << "nobody looks";

  PodInfo pod = MakePod("p");
  pod.constraints.relations.affinity.push_back({{}, "zone"});
  EXPECT_FALSE(cache_.UpsertPod(pod).capacity_grew) << "it changes nothing for others";
  other.labels = {{"app", "web"}};
  EXPECT_TRUE(cache_.UpsertPod(other).capacity_grew);
  EXPECT_FALSE(cache_.UpsertPod(other).changed);
  other.deleting = true;
  EXPECT_TRUE(cache_.UpsertPod(other).capacity_grew);
  EXPECT_TRUE(cache_.UpsertPod(Bound(MakePod("more"), "n1", {})).capacity_grew);
  EXPECT_TRUE(cache_.UpsertNamespace("d", {{"team", "a"}}).capacity_grew);
  EXPECT_FALSE(cache_.UpsertNamespace("d", {{"team", "a"}}).changed);
  EXPECT_TRUE(cache_.RemoveNamespace("d").capacity_grew);

  cache_.RemovePod({"d", "p"});
  other.labels.clear();
  EXPECT_FALSE(cache_.UpsertPod(other).capacity_grew) << "nobody looks any more";
}

TEST_F(CacheTest, ChangesOfNamespacesLeaveOlderSnapshotsAlone) {
  cache_.UpsertNamespace("d", {{"team", "a"}});
  const ClusterSnapshot before = cache_.snapshot();
  cache_.UpsertNamespace("d", {{"team", "b"}});
  cache_.UpsertNamespace("e", {});
  EXPECT_EQ(before.Namespaces(), (NamespaceLabels{{"d", {{"team", "a"}}}}));
  EXPECT_EQ(cache_.snapshot().Namespaces(), (NamespaceLabels{{"d", {{"team", "b"}}}, {"e", {}}}));
}

TEST_F(CacheTest, CountsATerminatingPodUntilItIsGone) {
  cache_.UpsertNode(MakeNode("n1"));
  PodInfo pod = Bound(MakePod("p"), "n1", {"g0"});
  cache_.UpsertPod(pod);
  pod.deleting = true;
  EXPECT_FALSE(cache_.UpsertPod(pod).capacity_grew);
  EXPECT_EQ(FreeGpus("n1"), 3);
  EXPECT_TRUE(cache_.RemovePod({"d", "p"}).capacity_grew);
  EXPECT_EQ(FreeGpus("n1"), 4);
}

TEST_F(CacheTest, FreesAFinishedPod) {
  cache_.UpsertNode(MakeNode("n1"));
  PodInfo pod = Bound(MakePod("p"), "n1", {"g0"});
  cache_.UpsertPod(pod);
  pod.phase = PodPhase::kRunning;
  EXPECT_FALSE(cache_.UpsertPod(pod).capacity_grew);
  pod.phase = PodPhase::kSucceeded;
  EXPECT_TRUE(cache_.UpsertPod(pod).capacity_grew);
  EXPECT_EQ(FreeGpus("n1"), 4);
}

TEST_F(CacheTest, EqualEventsChangeNothing) {
  EXPECT_TRUE(cache_.UpsertNode(MakeNode("n1")).changed);
  EXPECT_FALSE(cache_.UpsertNode(MakeNode("n1")).changed);
  EXPECT_TRUE(cache_.UpsertPod(MakePod("p")).changed);
  EXPECT_FALSE(cache_.UpsertPod(MakePod("p")).changed);
}

TEST_F(CacheTest, KeepsAnAssumptionUntilTheInformerShowsIt) {
  cache_.UpsertNode(MakeNode("n1"));
  cache_.UpsertPod(MakePod("p", 2));
  DeviceSet devices;
  devices.Add(1);
  devices.Add(3);
  ASSERT_TRUE(cache_.Assume({"d", "p"}, "n1", devices));
  EXPECT_FALSE(cache_.Assume({"d", "p"}, "n1", devices));
  EXPECT_EQ(FreeGpus("n1"), 2);
  EXPECT_TRUE(cache_.FindPod({"d", "p"})->IsPlaced());
  cache_.UpsertPod(Bound(MakePod("p", 2), "n1", {"g1", "g3"}));
  EXPECT_EQ(FreeGpus("n1"), 2);
  cache_.Forget({"d", "p"});
  EXPECT_EQ(FreeGpus("n1"), 2);
}

TEST_F(CacheTest, RemembersDevicesThatTheServerDidNotRecord) {
  cache_.UpsertNode(MakeNode("n1"));
  cache_.UpsertPod(MakePod("p"));
  DeviceSet devices;
  devices.Add(2);
  ASSERT_TRUE(cache_.Assume({"d", "p"}, "n1", devices));
  cache_.UpsertPod(Bound(MakePod("p"), "n1", {}));
  EXPECT_EQ(FreeDevices("n1"), (std::vector<size_t>{0, 1, 3}));
}

TEST_F(CacheTest, ADeviceThatTheNodeChoseIsNobodyElsesOnceItSaysWhich) {
  cache_.UpsertNode(MakeNode("n1"));
  cache_.UpsertPod(Bound(MakePod("p"), "n1", {}));
  EXPECT_EQ(FreeGpus("n1"), 3);
  EXPECT_EQ(FreeDevices("n1"), (std::vector<size_t>{0, 1, 2, 3}));
  EXPECT_TRUE(cache_.UpsertPod(Bound(MakePod("p"), "n1", {"g0"})).changed);
  EXPECT_EQ(FreeGpus("n1"), 3);
  EXPECT_EQ(FreeDevices("n1"), (std::vector<size_t>{1, 2, 3}));
}

TEST_F(CacheTest, TakesAnAssumptionBack) {
  cache_.UpsertNode(MakeNode("n1"));
  cache_.UpsertPod(MakePod("p"));
  DeviceSet devices;
  devices.Add(0);
  ASSERT_TRUE(cache_.Assume({"d", "p"}, "n1", devices));
  cache_.Forget({"d", "p"});
  EXPECT_EQ(FreeGpus("n1"), 4);
  EXPECT_TRUE(cache_.Assume({"d", "p"}, "n1", devices));
}

TEST_F(CacheTest, RefusesToAssumeWhatDoesNotFit) {
  cache_.UpsertNode(MakeNode("n1", 1));
  cache_.UpsertPod(MakePod("big", 2));
  cache_.UpsertPod(MakePod("a"));
  cache_.UpsertPod(MakePod("b"));
  DeviceSet first;
  first.Add(0);
  EXPECT_FALSE(cache_.Assume({"d", "big"}, "n1", first));
  EXPECT_FALSE(cache_.Assume({"d", "a"}, "elsewhere", first));
  EXPECT_FALSE(cache_.Assume({"d", "nobody"}, "n1", first));
  EXPECT_TRUE(cache_.Assume({"d", "a"}, "n1", first));
  EXPECT_FALSE(cache_.Assume({"d", "b"}, "n1", first));
}

TEST_F(CacheTest, AssumedDevicesKeepTheirIdsWhenTheNodeListsOthers) {
  cache_.UpsertNode(MakeNode("n1", 2));
  cache_.UpsertPod(MakePod("p"));
  DeviceSet second;
  second.Add(1);
  ASSERT_TRUE(cache_.Assume({"d", "p"}, "n1", second));
  NodeInfo node = MakeNode("n1", 2);
  node.devices.insert(node.devices.begin(), {"nvidia.com/gpu", "f9", -1, "M"});
  node.allocatable = {{"cpu", 8000}, {"nvidia.com/gpu", 3}, {"pods", 110}};
  EXPECT_TRUE(cache_.UpsertNode(node).capacity_grew);
  EXPECT_EQ(FreeDevices("n1"), (std::vector<size_t>{0, 1}));
}

TEST_F(CacheTest, ListedDevicesBoundWhatIsFree) {
  NodeInfo node = MakeNode("n1", 2);
  node.allocatable = {{"nvidia.com/gpu", 4}, {"pods", 110}};
  cache_.UpsertNode(node);
  EXPECT_EQ(FreeGpus("n1"), 2);
  // A pod that another scheduler bound without naming devices still counts.
  cache_.UpsertPod(Bound(MakePod("p", 3), "n1", {}));
  EXPECT_EQ(FreeGpus("n1"), 1);
}

TEST_F(CacheTest, FollowsADeviceListOnlyForWholeDevices) {
  NodeInfo node = MakeNode("n1", 1);
  node.devices = {{"cpu", "core-0", 0, ""}, {"nvidia.com/gpu", "g0", 0, "M"}};
  cache_.UpsertNode(node);
  cache_.UpsertPod(MakePod("p"));
  const ClusterSnapshot& snapshot = cache_.snapshot();
  const Shape& shape = snapshot.Shape(cache_.FindPod({"d", "p"})->shape);
  ASSERT_TRUE(snapshot.FitsAmounts(shape, 0));
  const DeviceSet devices = snapshot.PickDevices(shape, 0);
  EXPECT_EQ(devices.Positions(), (std::vector<size_t>{1}));
  EXPECT_FALSE(cache_.Assume({"d", "p"}, "n1", DeviceSet()));
  EXPECT_TRUE(cache_.Assume({"d", "p"}, "n1", devices));
}

TEST_F(CacheTest, ReplacesAPodThatWasMadeAgainUnderItsName) {
  cache_.UpsertNode(MakeNode("n1"));
  cache_.UpsertPod(Bound(MakePod("p"), "n1", {"g0"}));
  PodInfo again = MakePod("p");
  again.uid = "other";
  const CacheChange change = cache_.UpsertPod(again);
  EXPECT_TRUE(change.capacity_grew);
  EXPECT_EQ(FreeGpus("n1"), 4);
  EXPECT_FALSE(cache_.FindPod({"d", "p"})->IsPlaced());
}

TEST_F(CacheTest, ANodeThatLeavesAndComesBackHasItsPodsAgain) {
  cache_.UpsertNode(MakeNode("n1"));
  cache_.UpsertNode(MakeNode("n2"));
  cache_.UpsertPod(Bound(MakePod("p"), "n1", {"g0"}));
  cache_.RemoveNode("n1");
  EXPECT_EQ(cache_.FindNode("n1"), kNoIndex);
  EXPECT_EQ(cache_.snapshot().node_count(), 1u);
  EXPECT_TRUE(cache_.UpsertNode(MakeNode("n1")).capacity_grew);
  EXPECT_EQ(FreeGpus("n1"), 3);
}

TEST_F(CacheTest, EqualNodesAndPodsShareClassesAndShapes) {
  cache_.UpsertNode(MakeNode("n1"));
  cache_.UpsertNode(MakeNode("n2", 8));
  NodeInfo labelled = MakeNode("n3");
  labelled.labels["zone"] = "a";
  cache_.UpsertNode(labelled);
  const ClusterSnapshot& snapshot = cache_.snapshot();
  EXPECT_EQ(snapshot.ClassOf(cache_.FindNode("n1")), snapshot.ClassOf(cache_.FindNode("n2")));
  EXPECT_NE(snapshot.ClassOf(cache_.FindNode("n1")), snapshot.ClassOf(cache_.FindNode("n3")));
  cache_.UpsertPod(MakePod("a"));
  cache_.UpsertPod(MakePod("b"));
  cache_.UpsertPod(MakePod("c", 2));
  EXPECT_EQ(cache_.FindPod({"d", "a"})->shape, cache_.FindPod({"d", "b"})->shape);
  EXPECT_NE(cache_.FindPod({"d", "a"})->shape, cache_.FindPod({"d", "c"})->shape);
  cache_.RemovePod({"d", "c"});
  cache_.UpsertPod(MakePod("e", 3));
  EXPECT_EQ(snapshot.shape_slots(), 2u);
}

TEST_F(CacheTest, TellsOnlyOfChangesThatCouldLetPodsFit) {
  cache_.UpsertNode(MakeNode("n1"));
  NodeInfo worse = MakeNode("n1");
  worse.unschedulable = true;
  CacheChange change = cache_.UpsertNode(worse);
  EXPECT_TRUE(change.changed);
  EXPECT_FALSE(change.capacity_grew);
  EXPECT_TRUE(cache_.UpsertNode(MakeNode("n1")).capacity_grew);
  EXPECT_FALSE(cache_.RemoveNode("n1").capacity_grew);
}

TEST_F(CacheTest, HoldsMoreResourceNamesThanFitOneRow) {
  NodeInfo node = MakeNode("n1");
  for (int i = 0; i < 20; ++i) AddTo(node.allocatable, {{"x.com/r" + std::to_string(i), i + 1}});
  cache_.UpsertNode(MakeNode("n0"));
  cache_.UpsertNode(node);
  const ClusterSnapshot& snapshot = cache_.snapshot();
  EXPECT_EQ(snapshot.Free(cache_.FindNode("n1"), snapshot.FindResource("x.com/r19")), 20);
  EXPECT_EQ(snapshot.Free(cache_.FindNode("n0"), snapshot.FindResource("x.com/r19")), 0);
  EXPECT_EQ(FreeGpus("n0"), 4);
}

TEST_F(CacheTest, APodThatAsksBeyondTheResourceNameLimitFitsNowhere) {
  NodeInfo node = MakeNode("n1");
  for (size_t i = 0; i < kMaxResourceNames; ++i)
    AddTo(node.allocatable, {{"x.com/r" + std::to_string(i), 1}});
  cache_.UpsertNode(node);
  PodInfo pod = MakePod("p");
  pod.constraints.requests = {{"pods", 1}, {"y.com/other", 1}};
  cache_.UpsertPod(pod);
  const ClusterSnapshot& snapshot = cache_.snapshot();
  EXPECT_EQ(snapshot.resource_count(), kMaxResourceNames);
  const Shape& shape = snapshot.Shape(cache_.FindPod({"d", "p"})->shape);
  EXPECT_EQ(shape.unknown_resource, "y.com/other");
  EXPECT_FALSE(snapshot.FitsAmounts(shape, cache_.FindNode("n1")));
}

TEST_F(CacheTest, GroupsLiveAsLongAsTheirObjectOrTheirPods) {
  PodInfo pod = MakePod("p");
  pod.group = "g";
  cache_.UpsertPod(pod);
  ASSERT_NE(cache_.FindGroup({"d", "g"}), nullptr);
  EXPECT_EQ(cache_.FindGroup({"d", "g"})->info(), nullptr);
  PodGroupInfo info;
  info.ns = "d";
  info.name = "g";
  cache_.UpsertGroup(info);
  cache_.RemovePod({"d", "p"});
  ASSERT_NE(cache_.FindGroup({"d", "g"}), nullptr);
  cache_.RemoveGroup({"d", "g"});
  EXPECT_EQ(cache_.FindGroup({"d", "g"}), nullptr);
}

TEST_F(CacheTest, VolcanosPodGroupGoesBeforeThatOfSchedulerPlugins) {
  PodGroupInfo info;
  info.ns = "d";
  info.name = "g";
  info.api = GroupApi::kSchedulerPlugins;
  info.min_member = 3;
  EXPECT_TRUE(cache_.UpsertGroup(info).changed);
  EXPECT_EQ(cache_.FindGroup({"d", "g"})->info()->min_member, 3);
  info.api = GroupApi::kVolcano;
  info.min_member = 2;
  EXPECT_TRUE(cache_.UpsertGroup(info).changed);
  EXPECT_FALSE(cache_.UpsertGroup(info).changed);
  EXPECT_EQ(cache_.FindGroup({"d", "g"})->info()->min_member, 2);
  EXPECT_TRUE(cache_.RemoveGroup({"d", "g"}, GroupApi::kVolcano).changed);
  EXPECT_EQ(cache_.FindGroup({"d", "g"})->info()->min_member, 3);
  cache_.RemoveGroup({"d", "g"}, GroupApi::kSchedulerPlugins);
  EXPECT_EQ(cache_.FindGroup({"d", "g"}), nullptr);
}

}  // namespace
}  // namespace muster::cluster
