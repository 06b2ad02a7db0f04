// What users complain about in other schedulers (the numbers are those of the list of recurring
// complaints that the tests go by), as scenarios. Each also runs on a small scheduler that does it
// the complained-of way and must fail there, so that the scenario can fail.

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "scheduler/binder.h"
#include "scheduler/scheduler_test_base.h"
#include "scheduler/test_cluster.h"

namespace muster::scheduler {
namespace {

const cluster::ResourceList kOneGpu = {{"nvidia.com/gpu", 1}};
const cluster::ResourceList kTwoGpus = {{"nvidia.com/gpu", 2}};
const cluster::ResourceList kFourGpus = {{"nvidia.com/gpu", 4}};
const cluster::ResourceList kEightGpus = {{"nvidia.com/gpu", 8}};

// Places one pod after the other, each on the node that `choose` names.
using Choose =
    std::function<cluster::NodeIndex(const cluster::ClusterSnapshot&, const cluster::Shape&)>;
size_t PlacePodByPod(TestCluster& c, const std::vector<QueuedPod>& pods, const Choose& choose) {
  size_t placed = 0;
  for (const QueuedPod& pod : pods) {
    const cluster::ClusterSnapshot& now = c.cache.snapshot();
    const cluster::Shape& shape = now.Shape(pod.shape);
    const cluster::NodeIndex node = choose(now, shape);
    if (node == cluster::kNoIndex) continue;
    EXPECT_TRUE(c.cache.Assume(pod.key, now.Node(node).name, now.PickDevices(shape, node)));
    c.pending.erase(pod.key);
    ++placed;
  }
  return placed;
}
cluster::NodeIndex First(const cluster::ClusterSnapshot& snapshot, const cluster::Shape& shape) {
  for (cluster::NodeIndex node = 0; node < snapshot.node_slots(); ++node) {
    if (snapshot.FitsAmounts(shape, node)) return node;
  }
  return cluster::kNoIndex;
}
// The node with most of the device free, as kube-scheduler spreads by default.
cluster::NodeIndex Emptiest(const cluster::ClusterSnapshot& snapshot, const cluster::Shape& shape) {
  cluster::NodeIndex best = First(snapshot, shape);
  for (cluster::NodeIndex node = 0; node < snapshot.node_slots(); ++node) {
    if (snapshot.FitsAmounts(shape, node) &&
        snapshot.Free(node, shape.device_resource) > snapshot.Free(best, shape.device_resource))
      best = node;
  }
  return best;
}
// All pending pods, from old to new, whatever they belong to.
std::vector<QueuedPod> ByAge(const TestCluster& c) {
  std::vector<QueuedPod> pods;
  for (const Unit& unit : c.MakeQueue())
    pods.insert(pods.end(), unit.pods.begin(), unit.pods.end());
  std::stable_sort(pods.begin(), pods.end(),
                   [](const QueuedPod& a, const QueuedPod& b) { return a.created < b.created; });
  return pods;
}

// -- 1: pending with no usable reason; the gang's message masks the cause.

// What the gang plugins of others say.
std::string CountsOnly(const Unit& unit) {
  return fmt::format(
      "{}/{} tasks in gang unschedulable: pod group is not ready, {} Pending, {} "
      "minAvailable",
      unit.pods.size(), unit.members, unit.pods.size(), unit.min_member);
}
bool NamesTheCause(const std::string& message) {
  return message.find("1 node(s) had untolerated taint {team: b}") != std::string::npos;
}

TEST(Complaint1, TheMessageOfAGangNamesTheCause) {
  TestCluster c;
  cluster::NodeInfo tainted = c.MakeNode("n0", kFourGpus);
  tainted.taints = {{"team", "b", cluster::TaintEffect::kNoSchedule}};
  c.cache.UpsertNode(tainted);
  c.AddGang("g", 2, 2, kOneGpu);
  EXPECT_EQ(c.Plan(), 0u);
  EXPECT_TRUE(NamesTheCause(c.Message("g"))) << c.Message("g");
  EXPECT_FALSE(NamesTheCause(CountsOnly(c.MakeQueue().front())));
}

// -- 3: evictions that do not help: the victims are gone, the preemptor still waits.

// Makes room pod by pod, and never takes an eviction back.
std::set<std::string> EvictPodByPod(TestCluster& c, const std::string& gang) {
  std::set<std::string> victims;
  for (const Unit& unit : c.MakeQueue()) {
    if (unit.name != gang) continue;
    for (const QueuedPod& pod : unit.pods) {
      if (PlacePodByPod(c, {pod}, First) == 1) continue;
      for (const auto& [key, record] : c.cache.pods()) {
        if (record.info.node_name.empty() || record.info.priority >= unit.priority) continue;
        victims.insert(key.name);
        c.Remove(std::string(key.name));
        PlacePodByPod(c, {pod}, First);
        break;
      }
    }
  }
  return victims;
}

TEST(Complaint3, NobodyGoesForAGangThatDoesNotFitAllTheSame) {
  const auto make = [] {
    TestCluster c;
    c.AddNodes(1, kFourGpus);
    for (const char* name : {"low-0", "low-1"}) c.AddRunning(name, "n0", 0, kOneGpu);
    c.AddRunning("high", "n0", 9, kTwoGpus);
    c.AddGang("g", 3, 3, kOneGpu, /*priority=*/5);
    return c;
  };
  TestCluster ours = make();
  EXPECT_EQ(ours.Plan(), 0u);
  EXPECT_EQ(ours.VictimsOf("g"), std::set<std::string>{});
  TestCluster theirs = make();
  EXPECT_EQ(EvictPodByPod(theirs, "g"), (std::set<std::string>{"low-0", "low-1"}));
  EXPECT_LT(CountGang(theirs.cache, {"default", "g"}).occupied, 3);
  // Where it helps, as many go as are needed.
  ours.Remove("high");
  EXPECT_EQ(ours.Plan(), 0u);
  EXPECT_EQ(ours.VictimsOf("g").size(), 1u);
}

// -- 7: the quota says yes, the nodes say no.

// Admits units while the sum of what is free covers them, and places pods of admitted units alone.
size_t PlaceAdmitted(TestCluster& c) {
  const cluster::ClusterSnapshot& snapshot = c.cache.snapshot();
  const cluster::ResourceIndex gpu = snapshot.FindResource("nvidia.com/gpu");
  int64_t free = 0;
  for (cluster::NodeIndex node = 0; node < snapshot.node_slots(); ++node)
    free += snapshot.Free(node, gpu);
  Queue queue = c.MakeQueue();
  std::sort(queue.begin(), queue.end(), GoesBefore);
  std::vector<QueuedPod> admitted;
  for (const Unit& unit : queue) {
    int64_t wanted = 0;
    for (const QueuedPod& pod : unit.pods) wanted += snapshot.Shape(pod.shape).AmountOf(gpu);
    if (wanted > free) continue;
    free -= wanted;
    admitted.insert(admitted.end(), unit.pods.begin(), unit.pods.end());
  }
  return PlacePodByPod(c, admitted, First);
}

TEST(Complaint7, WhatFitsInSumOnlyHoldsNobodyUp) {
  const auto make = [] {
    TestCluster c;
    c.AddNodes(4, kOneGpu);
    c.AddGang("a", 2, 2, kTwoGpus);
    for (int i = 0; i < 4; ++i) c.AddPod(fmt::format("b{}", i), kOneGpu);
    return c;
  };
  TestCluster ours = make();
  EXPECT_EQ(ours.Plan(), 4u);
  EXPECT_EQ(ours.WhyNot("a").why, Infeasible::Why::kNeverFits);
  TestCluster theirs = make();
  EXPECT_EQ(PlaceAdmitted(theirs), 0u);
}

// -- 8: wrong accounting after restarts and races of events.

// Adds and subtracts as events come.
struct Ledger {
  int64_t used = 0;
  void Upsert(const cluster::PodInfo& pod) {
    const int64_t gpus = cluster::AmountOf(pod.constraints.requests, "nvidia.com/gpu");
    if (pod.IsFinished()) {
      used -= gpus;
    } else if (!pod.node_name.empty()) {
      used += gpus;
    }
  }
  void Remove(const cluster::PodInfo& pod) {
    used -= cluster::AmountOf(pod.constraints.requests, "nvidia.com/gpu");
  }
};

TEST(Complaint8, TheBooksAreRightWhateverTheEvents) {
  TestCluster c;
  Ledger ledger;
  const auto upsert = [&](const cluster::PodInfo& pod) {
    c.cache.UpsertPod(pod);
    ledger.Upsert(pod);
  };
  cluster::PodInfo a = c.MakePod("a", kTwoGpus);
  a.node_name = "n0";
  cluster::PodInfo b = c.MakePod("b", kOneGpu);
  b.node_name = "n0";
  upsert(a);  // before its node is known
  c.AddNodes(1, kFourGpus);
  upsert(a);
  b.phase = cluster::PodPhase::kRunning;
  upsert(b);
  b.priority = 1;  // changed, still there
  upsert(b);
  a.deleting = true;
  upsert(a);
  cluster::PodInfo finished = b;
  finished.phase = cluster::PodPhase::kSucceeded;
  upsert(finished);
  upsert(finished);  // a relist shows it again
  c.cache.RemovePod({"default", "b"});
  ledger.Remove(b);
  const cluster::ClusterSnapshot& snapshot = c.cache.snapshot();
  const auto used = [&](const cluster::ClusterSnapshot& of) {
    return 4 - of.Free(0, of.FindResource("nvidia.com/gpu"));
  };
  EXPECT_EQ(used(snapshot), 2);  // `a`, until it is gone
  EXPECT_NE(ledger.used, 2);
  TestCluster restarted;
  restarted.AddNodes(1, kFourGpus);
  restarted.cache.UpsertPod(a);
  EXPECT_EQ(used(restarted.cache.snapshot()), 2);
}

// -- 9: terminating pods counted as free.

size_t PlaceBeside(bool deletion_frees) {
  TestCluster c;
  c.AddNodes(1, kOneGpu);
  cluster::PodInfo leaving = c.MakePod("leaving", kOneGpu);
  leaving.node_name = "n0";
  c.AddPod(leaving);
  leaving.deleting = true;
  if (deletion_frees) {
    c.Remove("leaving");
  } else {
    c.AddPod(leaving);
  }
  c.AddPod("next", kOneGpu);
  return c.Plan();  // while the node still runs `leaving`
}

TEST(Complaint9, APodKeepsItsPlaceUntilItIsGone) {
  EXPECT_EQ(PlaceBeside(false), 0u);
  EXPECT_EQ(PlaceBeside(true), 1u);
}

// -- 10: gangs that hold parts of what the other needs.

// Two gangs of three, their pods in turns, on four GPUs. A gang that is whole ends and leaves.
// Returns how many gangs ended.
int RunTwoGangs(const std::function<void(TestCluster&)>& place) {
  TestCluster c;
  c.AddNodes(1, kFourGpus);
  for (const char* gang : {"a", "b"}) c.AddGang(gang, 3, 0, {});
  for (int i = 0; i < 3; ++i) {
    for (const char* gang : {"a", "b"}) c.AddGangPod(gang, fmt::format("{}-{}", gang, i), kOneGpu);
  }
  int ended = 0;
  for (int round = 0; round < 4; ++round) {
    place(c);
    for (const char* gang : {"a", "b"}) {
      if (CountGang(c.cache, {"default", gang}).occupied < 3) continue;
      for (int i = 0; i < 3; ++i) c.Remove(fmt::format("{}-{}", gang, i));
      ++ended;
    }
  }
  return ended;
}

TEST(Complaint10, GangsDoNotWaitForEachOther) {
  EXPECT_EQ(RunTwoGangs([](TestCluster& c) { c.Plan(); }), 2);
  EXPECT_EQ(RunTwoGangs([](TestCluster& c) { PlacePodByPod(c, ByAge(c), First); }), 0);
}

// -- 13: fragmentation of GPUs.

// Eight pods of one GPU, then three of eight, on four nodes of eight. Returns how many of the large
// ones got a place.
size_t PlaceLargeAfterSmall(const std::function<size_t(TestCluster&)>& place) {
  TestCluster c;
  c.AddNodes(4, kEightGpus);
  for (int i = 0; i < 8; ++i) c.AddPod(fmt::format("small{}", i), kOneGpu);
  EXPECT_EQ(place(c), 8u);
  for (int i = 0; i < 3; ++i) c.AddPod(fmt::format("large{}", i), kEightGpus);
  return place(c);
}

TEST(Complaint13, WholeNodesStayFreeForLargePods) {
  EXPECT_EQ(PlaceLargeAfterSmall([](TestCluster& c) { return c.Plan(); }), 3u);
  EXPECT_EQ(
      PlaceLargeAfterSmall([](TestCluster& c) { return PlacePodByPod(c, ByAge(c), Emptiest); }),
      0u);
}

// -- 15: a poison job is tried first in every cycle and blocks the others.

// One GPU, a pod of high priority whose binding is always refused, and another pod. A minute of
// cycles, as the scheduler makes them but for `pause`. True if the other pod ran.
bool RunBesidePoison(const std::function<Duration(int attempts)>& pause) {
  TestCluster c;
  c.AddNodes(1, kOneGpu);
  cluster::PodInfo poison = c.MakePod("poison", kOneGpu);
  poison.priority = 1000;
  c.AddPod(poison);
  c.AddPod("good", kOneGpu);
  int attempts = 0;
  Time until{};
  for (Time now{}; now < Time(minutes(1)); now += milliseconds(100)) {
    std::set<UnitKey> left_out;
    if (until > now) left_out.insert({false, {"default", "poison"}});
    const Queue queue = BuildQueue(c.cache, c.pending, {}, left_out);
    for (const UnitPlan& plan : Plan(c.cache.snapshot(), queue, {}, now).units) {
      if (plan.assignments.empty()) continue;
      if (queue[plan.unit].name == "good") return true;
      until = now + pause(++attempts);
    }
  }
  return false;
}

TEST(Complaint15, ARefusedBindingBlocksNobody) {
  EXPECT_TRUE(RunBesidePoison(BindBackoff));
  EXPECT_FALSE(RunBesidePoison([](int) { return Duration(0); }));
}

// The same on the whole scheduler.
TEST_F(SchedulerTest, Complaint15ARefusedBindingBlocksNobody) {
  refuse_bind = [](const std::string& pod, net::ResponseWriter& writer) {
    if (pod != "poison") return false;
    client::FakeApi::SendError(writer, 403, "Forbidden", "refused for ever");
    return true;
  };
  AddNode("n1", 1);
  api_.Put(kPods,
           MakePod("poison", 1).SetPath({"metadata", "creationTimestamp"}, "2025-01-01T00:00:00Z"));
  AddPod("good", 1);
  loop_.RunFor(seconds(1));
  EXPECT_EQ(NodeOf("good"), "n1");
}

// -- 16: many pending pods delay those that can run.

// One pod per cycle, those that waited longest first: how many cycles until `pod` has its turn.
size_t CyclesUntil(const TestCluster& c, const std::string& pod) {
  size_t cycles = 0;
  for (const QueuedPod& queued : ByAge(c)) {
    ++cycles;
    if (queued.key.name == pod) break;
  }
  return cycles;
}

TEST(Complaint16, ThoseThatWaitDoNotDelayOneThatFits) {
  constexpr size_t kWaiting = 2'000;
  TestCluster c;
  c.AddNodes(1, kFourGpus);
  for (size_t i = 0; i < kWaiting; ++i) c.AddPod(fmt::format("waits{}", i), kEightGpus);
  EXPECT_EQ(c.Plan(), 0u);
  c.AddPod("small", kOneGpu);
  EXPECT_EQ(CyclesUntil(c, "small"), kWaiting + 1);
  EXPECT_EQ(c.Plan(), 1u);  // the very next plan
  EXPECT_EQ(c.NodeOf("small"), "n0");
}

// On the whole scheduler: one plan, and not a word about the others.
TEST_F(SchedulerTest, Complaint16ThoseThatWaitDoNotDelayOneThatFits) {
  AddNode("n1", 4);
  for (int i = 0; i < 500; ++i) AddPod(fmt::format("waits{}", i), 8);
  Settle();
  const uint64_t plans = scheduler_->metrics().plans;
  const int writes = pod_status_writes_;
  AddPod("small", 1);
  loop_.RunFor(milliseconds(10));
  EXPECT_EQ(NodeOf("small"), "n1");
  EXPECT_LE(scheduler_->metrics().plans - plans, 2u);
  EXPECT_EQ(pod_status_writes_, writes);
}

// -- 17: more of a shared GPU is given away than it has.

// What each GPU gave away, in thousandths, by "node/position".
using Given = std::map<std::string, int64_t>;
int64_t MostOfOneGpu(const Given& given) {
  int64_t most = 0;
  for (const auto& [gpu, milli] : given) most = std::max(most, milli);
  return most;
}

const cluster::ResourceList kTwoThirds = {{"muster.dev/gpu-milli", 666}};

// Two GPUs of one node, and three pods that want two thirds each, as 16 GiB of 24.
TestCluster MakeTwoSharedGpus() {
  TestCluster c;
  cluster::NodeInfo node =
      c.MakeNode("n0", {{"nvidia.com/gpu", 2}, {"muster.dev/gpu-milli", 2000}});
  std::erase_if(node.devices,
                [](const auto& device) { return device.resource != "nvidia.com/gpu"; });
  c.cache.UpsertNode(std::move(node));
  for (int i = 0; i < 3; ++i) c.AddPod(fmt::format("s{}", i), kTwoThirds);
  return c;
}

Given GivenBy(const TestCluster& c, int64_t milli) {
  Given given;
  for (const auto& [key, record] : c.cache.pods()) {
    if (record.assumed_node.empty()) continue;
    for (const size_t gpu : record.assumed_devices.Positions())
      given[fmt::format("{}/{}", record.assumed_node, gpu)] += milli;
  }
  return given;
}

// Admits by what the node has left in sum; its device plugin then takes the emptiest GPU.
Given GiveBySum(const TestCluster& c) {
  int64_t left = 2000;
  Given given = {{"n0/0", 0}, {"n0/1", 0}};
  for (const QueuedPod& pod : ByAge(c)) {
    const int64_t wanted = c.cache.snapshot().Shape(pod.shape).gpu_milli;
    if (wanted > left) continue;
    left -= wanted;
    std::min_element(given.begin(), given.end(), [](const auto& a, const auto& b) {
      return a.second < b.second;
    })->second += wanted;
  }
  return given;
}

TEST(Complaint17, ASharedGpuGivesNoMoreThanItHas) {
  TestCluster ours = MakeTwoSharedGpus();
  EXPECT_EQ(ours.Plan(), 2u);
  EXPECT_EQ(ours.refused, 0u);
  EXPECT_LE(MostOfOneGpu(GivenBy(ours, 666)), 1000);
  const TestCluster theirs = MakeTwoSharedGpus();
  EXPECT_GT(MostOfOneGpu(GiveBySum(theirs)), 1000);
  // A GPU is nobody's as a whole before its last share is gone.
  ours.Remove("s2");
  ours.AddPod("whole", kOneGpu);
  EXPECT_EQ(ours.Plan(), 0u);
  ours.Remove("s0");
  EXPECT_EQ(ours.Plan(), 1u);
  EXPECT_NE(ours.DevicesOf("whole"), ours.DevicesOf("s1"));
}

}  // namespace
}  // namespace muster::scheduler
