// What each preference does in whole plans. That they add up to the stated order is
// preference_oracle_test.cc.

#include "scheduler/preferences.h"

#include <set>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "scheduler/node_finder.h"
#include "scheduler/test_cluster.h"

namespace muster::scheduler {
namespace {

const cluster::ResourceList kNode = {{"cpu", 8000}};
const cluster::ResourceList kGpuNode = {{"cpu", 8000}, {"nvidia.com/gpu", 4}};
constexpr const char* kHostname = "kubernetes.io/hostname";

cluster::PodTerm TermOf(const std::string& app, const std::string& key) {
  cluster::PodTerm term;
  term.pods.namespaces = {"default"};
  term.pods.labels = schema::LabelSelector({{"app", schema::LabelOperator::kIn, {app}}});
  term.topology_key = key;
  return term;
}

cluster::PreferredNodeTerm WithDisk(int64_t weight, const std::string& disk) {
  return {weight, {{{"disk", cluster::SelectorOperator::kIn, {disk}}}, {}}};
}

class PreferencesTest : public testing::Test {
 protected:
  // "n0" in zone "z0", "n1" in "z1", "n2" in "z0", ...
  void AddNodes(int count, int zones) {
    for (int i = 0; i < count; ++i) {
      cluster::NodeInfo node = c_.MakeNode("n" + std::to_string(i), kNode);
      node.labels["zone"] = "z" + std::to_string(i % zones);
      c_.cache.UpsertNode(node);
    }
  }
  cluster::PodInfo Pod(const std::string& name, const std::string& app = "web") {
    cluster::PodInfo pod = c_.MakePod(name, {{"cpu", 1000}});
    pod.labels = {{"app", app}};
    return pod;
  }
  void AddRunning(const std::string& node, cluster::PodInfo pod) {
    pod.node_name = node;
    c_.AddPod(pod);
  }
  std::string Place(const cluster::PodInfo& pod) {
    c_.AddPod(pod);
    c_.Plan();
    return c_.NodeOf(pod.name);
  }
  std::string Zone(const std::string& pod) {
    const cluster::ClusterSnapshot& snapshot = c_.cache.snapshot();
    return snapshot.Node(c_.cache.FindNode(c_.NodeOf(pod))).labels.at("zone");
  }
  TestCluster c_;
};

// -- Nodes.

TEST_F(PreferencesTest, TheHeavierNodeTermsWinAndComeBeforeTheFullestNode) {
  AddNodes(1, 1);
  for (const char* disk : {"hdd", "ssd"}) {
    cluster::NodeInfo node = c_.MakeNode(disk, kNode);
    node.labels["disk"] = disk;
    c_.cache.UpsertNode(node);
  }
  AddRunning("n0", Pod("running"));
  cluster::PodInfo pod = Pod("p");
  pod.constraints.affinity.preferred = {WithDisk(10, "hdd"), WithDisk(20, "ssd")};
  EXPECT_EQ(Place(pod), "ssd");
  EXPECT_EQ(Place(Pod("plain")), "n0");
}

TEST_F(PreferencesTest, ANodeThatDoesNotTakeThePodIsNotPreferred) {
  AddNodes(1, 1);
  cluster::NodeInfo small = c_.MakeNode("small", {{"cpu", 500}});
  small.labels["disk"] = "ssd";
  c_.cache.UpsertNode(small);
  cluster::PodInfo pod = Pod("p");
  pod.constraints.affinity.preferred = {WithDisk(100, "ssd")};
  EXPECT_EQ(Place(pod), "n0");
}

TEST_F(PreferencesTest, ATermMayNameNodes) {
  AddNodes(3, 1);
  cluster::PodInfo pod = Pod("p");
  pod.constraints.affinity.preferred = {
      {1, {{}, {{"metadata.name", cluster::SelectorOperator::kIn, {"n1"}}}}}};
  EXPECT_EQ(Place(pod), "n1");
}

TEST_F(PreferencesTest, PreferNoScheduleKeepsAwayWhileThereIsRoomElsewhere) {
  cluster::NodeInfo tainted = c_.MakeNode("tainted", kNode);
  tainted.taints = {{"k", "v", cluster::TaintEffect::kPreferNoSchedule}};
  c_.cache.UpsertNode(tainted);
  c_.cache.UpsertNode(c_.MakeNode("plain", {{"cpu", 1000}}));
  cluster::PodInfo tolerant = Pod("tolerant");
  tolerant.constraints.tolerations = {{"k", "v"}};
  EXPECT_EQ(Place(Pod("a")), "plain");
  EXPECT_EQ(Place(Pod("b")), "tainted");
  c_.Remove("a");
  c_.Remove("b");
  AddRunning("tainted", Pod("c"));
  c_.cache.UpsertNode(c_.MakeNode("empty", kNode));
  cluster::NodeInfo plain = c_.MakeNode("plain", kNode);
  c_.cache.UpsertNode(plain);
  EXPECT_EQ(Place(tolerant), "tainted") << "the fullest";
  EXPECT_EQ(Place(Pod("d")), "plain");
}

// -- Pods.

TEST_F(PreferencesTest, NearPodsThatItWantsAndFarFromOthers) {
  AddNodes(4, 2);
  AddRunning("n3", Pod("cache", "cache"));
  cluster::PodInfo near = Pod("near");
  near.constraints.relations.preferred = {{10, TermOf("cache", "zone")}};
  EXPECT_EQ(Place(near), "n3");
  cluster::PodInfo far = Pod("far");
  far.constraints.relations.preferred = {{-10, TermOf("cache", "zone")}};
  EXPECT_EQ(Place(far), "n0");
}

TEST_F(PreferencesTest, WhatRunningPodsPreferCountsToo) {
  AddNodes(3, 3);
  cluster::PodInfo shy = Pod("shy", "shy");
  shy.constraints.relations.preferred = {{-50, TermOf("web", "zone")}};
  AddRunning("n0", shy);
  cluster::PodInfo fond = Pod("fond", "fond");
  fond.constraints.relations.preferred = {{1, TermOf("web", "zone")}};
  AddRunning("n2", fond);
  EXPECT_EQ(Place(Pod("a")), "n2");
  c_.Remove("fond");
  c_.Remove("a");
  EXPECT_EQ(Place(Pod("b")), "n1");
}

TEST_F(PreferencesTest, RequiredAffinityOfOthersPullsWithWeightOne) {
  AddNodes(3, 3);
  AddRunning("n1", Pod("seed"));
  for (int i = 0; i < 2; ++i) {
    cluster::PodInfo needs = Pod("needs" + std::to_string(i), "needs");
    needs.constraints.relations.affinity = {TermOf("web", "zone")};
    AddRunning("n1", needs);
  }
  AddRunning("n0", Pod("x", "x"));
  AddRunning("n0", Pod("y", "y"));
  AddRunning("n0", Pod("z", "z"));
  AddRunning("n0", Pod("u", "u"));
  EXPECT_EQ(Place(Pod("a")), "n1") << "n0 is fuller";
}

TEST_F(PreferencesTest, PodsOfOnePlanKeepApartUntilAllNodesHaveOne) {
  AddNodes(4, 1);
  for (int i = 0; i < 8; ++i) {
    cluster::PodInfo pod = Pod("p" + std::to_string(i));
    pod.constraints.relations.preferred = {{-100, TermOf("web", kHostname)}};
    c_.AddPod(pod);
  }
  EXPECT_EQ(c_.Plan(), 8u);
  std::map<std::string, int> on;
  for (int i = 0; i < 8; ++i) ++on[c_.NodeOf("p" + std::to_string(i))];
  for (const auto& [node, pods] : on) EXPECT_EQ(pods, 2) << node;
}

TEST_F(PreferencesTest, ScheduleAnywaySpreadsButRefusesNobody) {
  AddNodes(4, 2);
  c_.cache.UpsertNode(c_.MakeNode("without-zone", kNode));
  for (int i = 0; i < 6; ++i) {
    cluster::PodInfo pod = Pod("p" + std::to_string(i));
    pod.constraints.relations.preferred_spread = {{TermOf("web", "zone"), 1}};
    c_.AddPod(pod);
  }
  EXPECT_EQ(c_.Plan(), 6u);
  std::map<std::string, int> in;
  for (int i = 0; i < 6; ++i) ++in[Zone("p" + std::to_string(i))];
  EXPECT_EQ(in, (std::map<std::string, int>{{"z0", 3}, {"z1", 3}}));
  for (const char* node : {"n0", "n2"}) {
    cluster::NodeInfo cordoned = c_.MakeNode(node, kNode);
    cordoned.labels["zone"] = "z0";
    cordoned.unschedulable = true;
    c_.cache.UpsertNode(cordoned);
  }
  cluster::PodInfo more = Pod("more");
  more.constraints.relations.preferred_spread = {{TermOf("web", "zone"), 1}};
  c_.AddPod(more);
  EXPECT_EQ(c_.Plan(), 1u);
  EXPECT_EQ(Zone("more"), "z1");
}

// -- Images.

TEST_F(PreferencesTest, ALargeImageThatIsThereSavesPulling) {
  AddNodes(2, 1);
  cluster::NodeInfo ready = c_.MakeNode("ready", kNode);
  const cluster::ImageHash torch = cluster::HashOfImage("torch");
  const cluster::ImageHash tool = cluster::HashOfImage("tool");
  ready.images = {{torch, int64_t{9} << 30}, {tool, 1 << 20}};
  std::sort(ready.images.begin(), ready.images.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  c_.cache.UpsertNode(ready);
  cluster::PodInfo pod = Pod("p");
  pod.constraints.images = {torch};
  EXPECT_EQ(Place(pod), "ready");
  cluster::PodInfo small = Pod("small");
  small.constraints.images = {tool};
  c_.Remove("p");
  EXPECT_EQ(Place(small), "n0") << "an image of 1 MB is pulled soon";
}

// -- Nodes with devices, and profiles.

TEST_F(PreferencesTest, OnlyWhatThePodStatesLeadsItOntoNodesWithDevices) {
  cluster::NodeInfo gpus = c_.MakeNode("gpus", kGpuNode);
  gpus.labels["disk"] = "ssd";
  gpus.images = {{cluster::HashOfImage("web"), int64_t{9} << 30}};
  c_.cache.UpsertNode(gpus);
  AddNodes(1, 1);
  cluster::PodInfo pod = Pod("p");
  pod.constraints.images = {cluster::HashOfImage("web")};
  EXPECT_EQ(Place(pod), "n0");
  cluster::PodInfo stated = Pod("stated");
  stated.constraints.affinity.preferred = {WithDisk(1, "ssd")};
  EXPECT_EQ(Place(stated), "gpus");
}

cluster::PodInfo Replica(cluster::PodInfo pod) {
  pod.constraints.profile = cluster::Profile::kSpread;
  pod.constraints.relations.preferred_spread = cluster::DefaultSpread({pod.ns, pod.labels});
  return pod;
}

TEST_F(PreferencesTest, TheSpreadingProfileTakesTheEmptiestNode) {
  AddNodes(3, 1);
  AddRunning("n0", Pod("a", "other"));
  AddRunning("n2", Pod("b", "other"));
  EXPECT_EQ(Place(Replica(Pod("replica"))), "n1");
  EXPECT_EQ(Place(Pod("packed", "db")), "n0") << "pods of other profiles pack as ever";
}

TEST_F(PreferencesTest, ReplicasOfTheSpreadingProfileKeepApartAndOffNodesWithDevices) {
  c_.cache.UpsertNode(c_.MakeNode("gpus", kGpuNode));
  AddNodes(2, 1);
  c_.cache.UpsertNode(c_.MakeNode("large", {{"cpu", 64'000}}));
  for (int i = 0; i < 6; ++i) c_.AddPod(Replica(Pod("p" + std::to_string(i))));
  EXPECT_EQ(c_.Plan(), 6u);
  std::map<std::string, int> on;
  for (int i = 0; i < 6; ++i) ++on[c_.NodeOf("p" + std::to_string(i))];
  EXPECT_EQ(on, (std::map<std::string, int>{{"large", 2}, {"n0", 2}, {"n1", 2}}));
}

TEST_F(PreferencesTest, PodsThatDifferInTheirProfileAloneAreTwoShapes) {
  c_.AddPod(Pod("a"));
  cluster::PodInfo other = Pod("b");
  other.constraints.profile = cluster::Profile::kSpread;
  c_.AddPod(other);
  EXPECT_NE(c_.cache.FindPod({"default", "a"})->shape, c_.cache.FindPod({"default", "b"})->shape);
}

// -- Heaps against a look at all nodes.

cluster::PodInfo RandomPod(Rng& rng, cluster::PodInfo pod) {
  pod.labels = {{"app", rng.Chance(0.5) ? "x" : "y"}};
  cluster::PodRelations& relations = pod.constraints.relations;
  const auto term = [&] {
    return TermOf(rng.Chance(0.5) ? "x" : "y", rng.Chance(0.5) ? "zone" : kHostname);
  };
  if (rng.Chance(0.3)) relations.preferred.push_back({rng.Between(-100, 100), term()});
  if (rng.Chance(0.3)) relations.preferred.push_back({rng.Between(-100, 100), term()});
  if (rng.Chance(0.2)) relations.affinity = {term()};
  if (rng.Chance(0.4)) relations.preferred_spread = {{term(), rng.Between(1, 3)}};
  if (rng.Chance(0.2)) relations.spread = {{term(), 2}};
  if (rng.Chance(0.3)) pod.constraints.affinity.preferred = {WithDisk(5, "ssd")};
  if (rng.Chance(0.3)) pod.constraints.images = {cluster::HashOfImage("i")};
  return rng.Chance(0.2) ? Replica(pod) : pod;
}

// More nodes than a heap holds at first.
TEST_F(PreferencesTest, HeapsAnswerAsALookAtAllNodesDoes) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    Rng rng(seed);
    c_ = TestCluster();
    for (int i = 0; i < 250; ++i) {
      cluster::NodeInfo node = c_.MakeNode("n" + std::to_string(i), kNode);
      node.labels["zone"] = "z" + std::to_string(rng.Below(5));
      if (rng.Chance(0.5)) node.labels["disk"] = "ssd";
      if (rng.Chance(0.2)) node.images = {{cluster::HashOfImage("i"), rng.Between(1, 40) << 28}};
      if (rng.Chance(0.2)) node.taints = {{"k", "v", cluster::TaintEffect::kPreferNoSchedule}};
      c_.cache.UpsertNode(node);
    }
    std::vector<const cluster::PodRecord*> pods;
    for (int i = 0; i < 12; ++i) {
      const std::string name = "p" + std::to_string(i);
      c_.AddPod(RandomPod(rng, c_.MakePod(name, {{"cpu", rng.Between(1, 4) * 1000}})));
      pods.push_back(c_.cache.FindPod({"default", name}));
    }
    cluster::ClusterSnapshot snapshot = c_.cache.snapshot();
    NodeFinder finder(snapshot);
    std::vector<cluster::PlacementIndex> placed;
    for (int step = 0; step < 600; ++step) {
      // Some pod goes many times in a row, so that its heap runs dry.
      const cluster::PodRecord& pod = *pods[rng.Chance(0.5) ? seed % 12 : rng.Below(pods.size())];
      const cluster::NodeIndex node = finder.Best(pod.shape, pod.identity);
      cluster::ClusterSnapshot copy = snapshot;
      ASSERT_EQ(node, NodeFinder(copy).Best(pod.shape, pod.identity))
          << "seed " << seed << " step " << step;
      if (node != cluster::kNoIndex)
        placed.push_back(finder.Place(pod.shape, node, pod.holder, {}, pod.identity));
      if (!placed.empty() && rng.Chance(0.3)) {
        std::swap(placed[rng.Below(placed.size())], placed.back());
        finder.Remove(placed.back());
        placed.pop_back();
      }
    }
  }
}

}  // namespace
}  // namespace muster::scheduler
