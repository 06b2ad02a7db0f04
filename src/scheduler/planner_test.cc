#include "scheduler/planner.h"

#include <functional>
#include <map>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "scheduler/linked_nodes.h"
#include "scheduler/node_finder.h"
#include "scheduler/test_cluster.h"

namespace muster::scheduler {
namespace {

constexpr int64_t kGi = int64_t{1} << 30;
const cluster::ResourceList kCpuNode = {{"cpu", 8000}, {"memory", 32 * kGi}};
const cluster::ResourceList kGpuNode = {{"cpu", 8000}, {"memory", 32 * kGi}, {"nvidia.com/gpu", 4}};
const cluster::ResourceList kOneGpu = {{"nvidia.com/gpu", 1}};

// -- One rule each: a node that fails it is told so, in kube-scheduler's words.

struct RuleCase {
  const char* name;
  std::function<void(cluster::NodeInfo&)> spoil_node;
  std::function<void(cluster::PodInfo&)> spoil_pod;
  const char* message;
};

class RuleTest : public testing::TestWithParam<RuleCase> {};

TEST_P(RuleTest, KeepsThePodAwayAndSaysWhy) {
  const RuleCase& rule = GetParam();
  TestCluster c;
  cluster::NodeInfo node = c.MakeNode("n0", kGpuNode);
  if (rule.spoil_node) rule.spoil_node(node);
  c.cache.UpsertNode(node);
  cluster::PodInfo pod = c.MakePod("p", {{"cpu", 1000}});
  if (rule.spoil_pod) rule.spoil_pod(pod);
  c.AddPod(pod);
  EXPECT_EQ(c.Plan(), 0u);
  EXPECT_EQ(NodesAvailableText(c.WhyNot("p")), rule.message);
}

void Request(cluster::PodInfo& pod, const std::string& resource, int64_t amount) {
  cluster::AddTo(pod.constraints.requests, {{resource, amount}});
}

INSTANTIATE_TEST_SUITE_P(
    Rules, RuleTest,
    testing::Values(
        RuleCase{"Cordon", [](auto& node) { node.unschedulable = true; }, nullptr,
                 "0/1 nodes are available: 1 node(s) were unschedulable."},
        RuleCase{"Taint",
                 [](auto& node) { node.taints = {{"k", "v", cluster::TaintEffect::kNoSchedule}}; },
                 nullptr, "0/1 nodes are available: 1 node(s) had untolerated taint {k: v}."},
        RuleCase{"NoExecuteTaint",
                 [](auto& node) { node.taints = {{"k", "", cluster::TaintEffect::kNoExecute}}; },
                 nullptr, "0/1 nodes are available: 1 node(s) had untolerated taint {k: }."},
        RuleCase{"NodeSelector", nullptr,
                 [](auto& pod) { pod.constraints.affinity.selector = {{"zone", "a"}}; },
                 "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."},
        RuleCase{"NodeAffinity", nullptr,
                 [](auto& pod) {
                   pod.constraints.affinity.has_terms = true;
                   pod.constraints.affinity.terms = {
                       {{{"zone", cluster::SelectorOperator::kExists, {}}}, {}}};
                 },
                 "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."},
        RuleCase{"Cpu", nullptr, [](auto& pod) { Request(pod, "cpu", 8000); },
                 "0/1 nodes are available: 1 Insufficient cpu."},
        RuleCase{"Memory", nullptr, [](auto& pod) { Request(pod, "memory", 33 * kGi); },
                 "0/1 nodes are available: 1 Insufficient memory."},
        RuleCase{"EphemeralStorage", nullptr,
                 [](auto& pod) { Request(pod, "ephemeral-storage", 1); },
                 "0/1 nodes are available: 1 Insufficient ephemeral-storage."},
        RuleCase{"Pods", [](auto& node) { node.allocatable = {{"cpu", 8000}}; }, nullptr,
                 "0/1 nodes are available: 1 Too many pods."},
        RuleCase{"Gpus", nullptr, [](auto& pod) { Request(pod, "nvidia.com/gpu", 5); },
                 "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."},
        RuleCase{"ListedDevices", [](auto& node) { node.devices.resize(2); },
                 [](auto& pod) { Request(pod, "nvidia.com/gpu", 3); },
                 "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."},
        RuleCase{"UnknownResource", nullptr, [](auto& pod) { Request(pod, "example.com/foo", 1); },
                 "0/1 nodes are available: 1 Insufficient example.com/foo."},
        RuleCase{"Several", nullptr,
                 [](auto& pod) {
                   Request(pod, "cpu", 8000);
                   Request(pod, "memory", 33 * kGi);
                 },
                 "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory."}),
    [](const auto& info) { return info.param.name; });

TEST(Planner, TheFirstRuleThatFailsIsTheOneThatCounts) {
  TestCluster c;
  cluster::NodeInfo node = c.MakeNode("n0", kCpuNode);
  node.unschedulable = true;
  node.taints = {{"k", "v", cluster::TaintEffect::kNoSchedule}};
  c.cache.UpsertNode(node);
  cluster::PodInfo pod = c.MakePod("p", {{"cpu", 100'000}});
  pod.constraints.affinity.selector = {{"zone", "a"}};
  c.AddPod(pod);
  c.Plan();
  EXPECT_EQ(NodesAvailableText(c.WhyNot("p")),
            "0/1 nodes are available: 1 node(s) were unschedulable.");
}

TEST(Planner, ToleratedCordonsAndTaintsKeepNobodyAway) {
  TestCluster c;
  cluster::NodeInfo node = c.MakeNode("n0", kCpuNode);
  node.unschedulable = true;
  node.taints = {{"k", "v", cluster::TaintEffect::kNoSchedule}};
  c.cache.UpsertNode(node);
  cluster::PodInfo pod = c.MakePod("p", {{"cpu", 1000}});
  pod.constraints.tolerations = {{"", "", true, true, {}}};
  c.AddPod(pod);
  EXPECT_EQ(c.Plan(), 1u);
}

TEST(Planner, AffinityByNameFindsTheNode) {
  TestCluster c;
  c.AddNodes(3, kCpuNode);
  cluster::PodInfo pod = c.MakePod("p", {{"cpu", 1000}});
  pod.constraints.affinity.has_terms = true;
  pod.constraints.affinity.terms = {
      {{}, {{"metadata.name", cluster::SelectorOperator::kIn, {"n2"}}}}};
  c.AddPod(pod);
  cluster::PodInfo by_host = c.MakePod("h", {{"cpu", 1000}});
  by_host.constraints.affinity.selector = {{"kubernetes.io/hostname", "n1"}};
  c.AddPod(by_host);
  EXPECT_EQ(c.Plan(), 2u);
  EXPECT_EQ(c.NodeOf("p"), "n2");
  EXPECT_EQ(c.NodeOf("h"), "n1");
}

// -- Which node, which device.

TEST(Planner, GpuPodsGoWhereTheFewestGpusAreFree) {
  TestCluster c;
  c.AddNodes(3, kGpuNode);
  c.AddPod("two", {{"nvidia.com/gpu", 2}});
  c.Plan();
  c.AddPod("one", kOneGpu);
  c.AddPod("big", {{"nvidia.com/gpu", 4}});
  c.Plan();
  EXPECT_EQ(c.NodeOf("two"), "n0");
  EXPECT_EQ(c.NodeOf("one"), "n0");
  EXPECT_EQ(c.NodeOf("big"), "n1");
}

TEST(Planner, CpuPodsKeepOffGpuNodesWhileAnotherNodeTakesThem) {
  TestCluster c;
  c.AddNodes(1, kGpuNode);
  c.AddNodes(1, kCpuNode);
  c.AddPod("a", {{"cpu", 5000}});
  c.AddPod("b", {{"cpu", 5000}});
  EXPECT_EQ(c.Plan(), 2u);
  EXPECT_EQ(c.NodeOf("a"), "n1");
  EXPECT_EQ(c.NodeOf("b"), "n0");
}

TEST(Planner, PacksTheFullerNodeAndBreaksTiesByIndex) {
  TestCluster c;
  c.AddNodes(3, kCpuNode);
  c.AddPod("a", {{"cpu", 3000}});
  c.AddPod("b", {{"cpu", 3000}});
  c.AddPod("c", {{"cpu", 3000}});
  c.AddPod("d", {{"cpu", 1000}});
  EXPECT_EQ(c.Plan(), 4u);
  EXPECT_EQ(c.NodeOf("a"), "n0");
  EXPECT_EQ(c.NodeOf("b"), "n0");
  EXPECT_EQ(c.NodeOf("c"), "n1");
  EXPECT_EQ(c.NodeOf("d"), "n0");
}

TEST(Planner, GivesTheLowestFreeDevices) {
  TestCluster c;
  c.AddNodes(1, kGpuNode);
  c.AddPod("a", kOneGpu);
  c.AddPod("b", {{"nvidia.com/gpu", 2}});
  c.Plan();
  EXPECT_EQ(c.DevicesOf("a"), (std::vector<size_t>{0}));
  EXPECT_EQ(c.DevicesOf("b"), (std::vector<size_t>{1, 2}));
  c.Remove("a");
  c.AddPod("c", {{"nvidia.com/gpu", 2}});
  c.Plan();
  EXPECT_EQ(c.DevicesOf("c"), (std::vector<size_t>{0, 3}));
}

TEST(Planner, CountsAnExtendedResourceWithoutListedDevices) {
  TestCluster c;
  cluster::NodeInfo node = c.MakeNode("n0", {{"example.com/licence", 2}});
  node.devices.clear();
  c.cache.UpsertNode(node);
  for (const char* name : {"a", "b", "c"}) c.AddPod(name, {{"example.com/licence", 1}});
  EXPECT_EQ(c.Plan(), 2u);
  EXPECT_EQ(c.NodeOf("c"), "");
}

// -- Order.

TEST(Planner, HigherPriorityGoesFirstThenOlder) {
  TestCluster c;
  c.AddNodes(1, kGpuNode);
  cluster::PodInfo low = c.MakePod("low", {{"nvidia.com/gpu", 3}});
  cluster::PodInfo older = c.MakePod("older", {{"nvidia.com/gpu", 3}});
  cluster::PodInfo younger = c.MakePod("younger", {{"nvidia.com/gpu", 3}});
  older.priority = younger.priority = 10;
  c.AddPod(low);
  c.AddPod(younger);
  c.AddPod(older);
  EXPECT_EQ(c.Plan(), 1u);
  EXPECT_EQ(c.NodeOf("older"), "n0");
}

TEST(Planner, AUnitThatDoesNotFitBlocksNobody) {
  TestCluster c;
  c.AddNodes(1, kGpuNode);
  c.AddGang("huge", 100, 100, kOneGpu, /*priority=*/100);
  c.AddPod("small", kOneGpu);
  EXPECT_EQ(c.Plan(), 1u);
  EXPECT_EQ(c.NodeOf("small"), "n0");
}

TEST(Planner, AnEmptyClusterIsToldAsKubeSchedulerTellsIt) {
  TestCluster c;
  c.AddPod("p", kOneGpu);
  c.Plan();
  EXPECT_EQ(c.Message("p"), "no nodes available to schedule pods");
}

// -- Gangs that were interrupted.

// What an interrupted gang needs goes first, what it has beyond that in its turn.
TEST(Planner, ElasticPodsOfAnInterruptedGangWaitForTheirTurn) {
  TestCluster c;
  c.AddNodes(1, {{"cpu", 64'000}, {"nvidia.com/gpu", 3}});
  c.AddGang("low", 2, 0, {});
  cluster::PodInfo bound = c.MakeRunning("low-0", "n0", 0, kOneGpu);
  bound.group = "low";
  c.AddPod(bound);
  for (int i = 1; i < 4; ++i) c.AddGangPod("low", fmt::format("low-{}", i), kOneGpu);
  cluster::PodInfo high = c.MakePod("high", kOneGpu);
  high.priority = 9;
  high.may_preempt = false;
  c.AddPod(high);
  EXPECT_EQ(c.Plan(), 2u);
  EXPECT_EQ(c.NodeOf("low-1"), "n0");
  EXPECT_EQ(c.NodeOf("high"), "n0");
  EXPECT_EQ(c.PlanOf("low").infeasible->started_with, 2);
  // With room for all, none waits.
  c.AddNodes(1, {{"cpu", 64'000}, {"nvidia.com/gpu", 2}});
  EXPECT_EQ(c.Plan(), 2u);
}

// The same for several, where each task needs its own, and a gang that cannot be completed.
TEST(Planner, ElasticPodsOfInterruptedGangsWaitForTheirTurn) {
  TestCluster c;
  c.AddNodes(1, {{"cpu", 64'000}, {"nvidia.com/gpu", 8}});
  const auto begin = [&](const std::string& gang, int64_t min_member) {
    c.AddGang(gang, min_member, 0, {});
    cluster::PodInfo bound = c.MakeRunning(gang + "-0", "n0", 0, kOneGpu);
    bound.group = gang;
    bound.task = "worker";
    c.AddPod(bound);
  };
  begin("a", 3);
  c.ChangeGroup("a", [](cluster::PodGroupInfo& group) {
    group.min_task_member = {{"ps", 1}, {"worker", 1}};
  });
  c.AddGangPod("a", "a-1", kOneGpu, 0, "worker");
  c.AddGangPod("a", "a-2", kOneGpu, 0, "worker");
  c.AddGangPod("a", "a-3", kOneGpu, 0, "ps");
  begin("b", 2);
  for (int i = 1; i < 3; ++i) c.AddGangPod("b", fmt::format("b-{}", i), kOneGpu, 1);
  begin("c", 9);
  c.AddGangPod("c", "c-1", kOneGpu);
  cluster::PodInfo high = c.MakePod("high", {{"nvidia.com/gpu", 2}});
  high.priority = 9;
  high.may_preempt = false;
  c.AddPod(high);
  // Five are free: three complete `a` and `b`, two are for `high`.
  EXPECT_EQ(c.Plan(), 4u);
  EXPECT_EQ(c.NodeOf("high"), "n0");
  EXPECT_EQ(c.NodeOf("a-3"), "n0");
  EXPECT_EQ(CountGang(c.cache, {"default", "a"}).occupied, 3);
  EXPECT_EQ(CountGang(c.cache, {"default", "b"}).occupied, 2);
  // Of what is left over, the higher priority's comes first.
  c.Remove("high");
  c.AddPod("last", kOneGpu);
  EXPECT_EQ(c.Plan(), 2u);
  EXPECT_EQ(CountGang(c.cache, {"default", "a"}).occupied, 4);
  EXPECT_EQ(CountGang(c.cache, {"default", "b"}).occupied, 3);
}

// -- The finder against plain search: its heaps, bounds and history must never change the answer.

cluster::NodeIndex BestByPlainSearch(const cluster::ClusterSnapshot& snapshot,
                                     const cluster::Shape& shape) {
  cluster::NodeIndex best = cluster::kNoIndex;
  std::vector<int64_t> best_order;
  const cluster::ResourceIndex gpu = snapshot.FindResource("nvidia.com/gpu");
  for (cluster::NodeIndex node = 0; node < snapshot.node_slots(); ++node) {
    if (!snapshot.HasNode(node) || !snapshot.FitsAmounts(shape, node)) continue;
    if (!cluster::Matches(shape.constraints.affinity, snapshot.Node(node).labels_view())) continue;
    const bool wants = shape.device_resource != cluster::kNoIndex;
    const bool has = snapshot.HasDevices(node);
    const std::vector<int64_t> order = {
        !wants && has ? 1 : 0, SplitsLinks(snapshot, shape, node) ? 1 : 0,
        wants || has ? snapshot.Free(node, gpu) : 0, snapshot.Free(node, cluster::kCpuIndex), node};
    if (best == cluster::kNoIndex || order < best_order) {
      best = node;
      best_order = order;
    }
  }
  return best;
}

TEST(NodeFinder, AnswersAsPlainSearchDoesWhilePodsComeAndGo) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    Rng rng(seed);
    TestCluster c;
    for (int i = 0; i < 150; ++i) {
      cluster::NodeInfo node =
          c.MakeNode("n" + std::to_string(i), rng.Chance(0.5) ? kGpuNode : kCpuNode);
      node.labels["zone"] = rng.Chance(0.5) ? "a" : "b";
      if (node.devices.size() >= 2 && rng.Chance(0.5)) TestCluster::LinkDevices(node, {{0, 1}});
      c.cache.UpsertNode(node);
    }
    std::vector<cluster::ShapeIndex> shapes;
    for (int i = 0; i < 12; ++i) {
      cluster::PodInfo pod =
          c.MakePod("s" + std::to_string(i), {{"cpu", rng.Between(1, 40) * 100}});
      if (rng.Chance(0.5)) Request(pod, "nvidia.com/gpu", rng.Between(1, 4));
      if (rng.Chance(0.3)) pod.constraints.affinity.selector = {{"zone", "a"}};
      if (rng.Chance(0.1)) pod.constraints.affinity.selector = {{"kubernetes.io/hostname", "n7"}};
      c.AddPod(pod);
      shapes.push_back(c.cache.FindPod({"default", pod.name})->shape);
    }
    cluster::ClusterSnapshot snapshot = c.cache.snapshot();
    const cluster::HolderIndex holder = c.cache.FindPod({"default", "s0"})->holder;
    NodeFinder finder(snapshot);
    std::vector<cluster::PlacementIndex> placed;
    for (int step = 0; step < 500; ++step) {
      const cluster::ShapeIndex index = shapes[rng.Below(shapes.size())];
      const cluster::Shape& shape = snapshot.Shape(index);
      const cluster::NodeIndex node = finder.Best(index);
      ASSERT_EQ(node, BestByPlainSearch(snapshot, shape)) << "seed " << seed << " step " << step;
      if (node != cluster::kNoIndex && rng.Chance(0.8)) {
        placed.push_back(finder.Place(index, node, holder, snapshot.PickDevices(shape, node)));
      }
      if (!placed.empty() && rng.Chance(0.3)) {
        std::swap(placed[rng.Below(placed.size())], placed.back());
        finder.Remove(placed.back());
        placed.pop_back();
      }
    }
  }
}

// -- Properties of whole plans, on random clusters.

struct World {
  TestCluster c;
  std::map<std::string, int64_t> min_member;  // by gang
};

void Fill(World& world, Rng& rng) {
  const int nodes = static_cast<int>(rng.Between(1, 12));
  for (int i = 0; i < nodes; ++i) world.c.AddNodes(1, rng.Chance(0.6) ? kGpuNode : kCpuNode);
  const int units = static_cast<int>(rng.Between(1, 25));
  for (int i = 0; i < units; ++i) {
    const std::string name = "u" + std::to_string(i);
    cluster::ResourceList wants = {{"cpu", rng.Between(1, 30) * 100}};
    if (rng.Chance(0.7)) cluster::AddTo(wants, {{"nvidia.com/gpu", rng.Between(1, 4)}});
    if (rng.Chance(0.5)) {
      world.c.AddPod(name, wants);
      continue;
    }
    const int64_t min_member = rng.Between(1, 6);
    world.min_member[name] = min_member;
    world.c.AddGang(name, min_member, static_cast<int>(rng.Between(1, 8)), wants,
                    rng.Between(0, 2));
  }
}

void ExpectNothingOversubscribed(const cluster::ClusterSnapshot& snapshot) {
  for (cluster::NodeIndex node = 0; node < snapshot.node_slots(); ++node) {
    if (!snapshot.HasNode(node)) continue;
    for (const int64_t free : snapshot.FreeRow(node)) EXPECT_GE(free, 0);
  }
}

void ExpectDevicesOwnedOnce(const TestCluster& c) {
  std::map<std::string, cluster::DeviceSet> taken;
  const cluster::ClusterSnapshot& snapshot = c.cache.snapshot();
  const cluster::ResourceIndex gpu = snapshot.FindResource("nvidia.com/gpu");
  for (const auto& [key, pod] : c.cache.pods()) {
    if (!pod.IsPlaced()) continue;
    if (gpu != cluster::kNoIndex) {
      EXPECT_EQ(pod.assumed_devices.Count(), snapshot.Shape(pod.shape).AmountOf(gpu));
    }
    EXPECT_TRUE(taken[pod.assumed_node].And(pod.assumed_devices).IsEmpty());
    taken[pod.assumed_node].Add(pod.assumed_devices);
  }
}

void ExpectGangsWholeOrAbsent(const World& world) {
  for (const auto& [gang, min_member] : world.min_member) {
    const GangCount count = CountGang(world.c.cache, {"default", gang});
    EXPECT_TRUE(count.occupied == 0 || count.occupied >= min_member) << gang;
  }
}

std::string Trace(const TestCluster& c) {
  std::string out;
  for (const UnitPlan& unit : c.result.units) {
    out += c.queue[unit.unit].name + ":";
    for (const Assignment& assignment : unit.assignments) {
      out += assignment.node + "/";
      for (const size_t device : assignment.devices.Positions())
        out += std::to_string(device) + ",";
    }
    if (unit.infeasible.has_value()) out += Explain(*unit.infeasible);
    out += "\n";
  }
  return out;
}

TEST(PlannerProperties, HoldOnRandomClustersWithArrivalsAndDepartures) {
  size_t gangs_placed = 0;
  size_t gangs_refused = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Rng rng(seed);
    World world;
    Fill(world, rng);
    for (int round = 0; round < 3; ++round) {
      world.c.Plan();
      EXPECT_EQ(world.c.refused, 0u) << "seed " << seed;
      ExpectNothingOversubscribed(world.c.cache.snapshot());
      ExpectDevicesOwnedOnce(world.c);
      if (round == 0) ExpectGangsWholeOrAbsent(world);
      for (const UnitPlan& unit : world.c.result.units) {
        if (!world.c.queue[unit.unit].is_gang) continue;
        ++(unit.assignments.empty() ? gangs_refused : gangs_placed);
      }
      std::vector<std::string> placed;
      for (const auto& [key, pod] : world.c.cache.pods()) {
        if (pod.IsPlaced() && rng.Chance(0.3)) placed.push_back(key.name);
      }
      for (const std::string& name : placed) world.c.Remove(name);
    }
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(gangs_placed, 100u);
  EXPECT_GT(gangs_refused, 100u);
}

TEST(PlannerProperties, TheSameClusterGivesTheSamePlanAndTexts) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    World first, second;
    Rng a(seed), b(seed);
    Fill(first, a);
    Fill(second, b);
    first.c.Plan();
    second.c.Plan();
    ASSERT_EQ(Trace(first.c), Trace(second.c)) << "seed " << seed;
  }
}

TEST(PlannerProperties, ARefusedUnitReallyDoesNotFit) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Rng rng(seed);
    World world;
    Fill(world, rng);
    world.c.Plan();
    // Nothing changed: a second plan must find nothing to place either.
    EXPECT_EQ(world.c.Plan(), 0u) << "seed " << seed;
  }
}

}  // namespace
}  // namespace muster::scheduler
