// That the jobs which are named really let the unit in, that none of them is superfluous, and that
// none is named only where nothing helps: against all subsets of the running jobs of small random
// clusters.

#include "scheduler/unblocking.h"

#include <gtest/gtest.h>

#include <bit>

#include "base/rng.h"
#include "base/seeds_test_support.h"
#include "scheduler/obstacles.h"
#include "scheduler/test_cluster.h"

namespace muster::scheduler {
namespace {

constexpr uint64_t kSeeds = SeedsOf(1'500);
constexpr int kJobs = 7;

cluster::PodTerm TermOf(const std::string& app, const std::string& key) {
  cluster::PodTerm term;
  term.pods.namespaces = {"default"};
  term.pods.labels = schema::LabelSelector({{"app", schema::LabelOperator::kIn, {app}}});
  term.topology_key = key;
  return term;
}

std::string RandomApp(Rng& rng) { return rng.Below(2) == 0 ? "x" : "y"; }
std::string RandomKey(Rng& rng) { return rng.Below(2) == 0 ? "zone" : "kubernetes.io/hostname"; }

void GiveRandomRules(Rng& rng, cluster::PodInfo& pod) {
  cluster::PodRelations& relations = pod.constraints.relations;
  pod.labels = {{"app", RandomApp(rng)}};
  if (rng.Below(4) == 0) relations.ports = {{"0.0.0.0", "TCP", static_cast<int64_t>(rng.Below(2))}};
  if (rng.Below(4) == 0) relations.anti_affinity.push_back(TermOf(RandomApp(rng), RandomKey(rng)));
  if (rng.Below(6) == 0) {
    cluster::SpreadConstraint spread;
    spread.term = TermOf(pod.labels.front().second, RandomKey(rng));
    relations.spread.push_back(spread);
  }
}

void AddRandomJob(TestCluster& c, Rng& rng, const std::string& name, int pods, bool gang,
                  bool shares) {
  if (gang) {
    cluster::PodGroupInfo group;
    group.ns = "default";
    group.name = name;
    group.min_member = pods;
    c.cache.UpsertGroup(group);
  }
  cluster::PodInfo like = c.MakePod(name, {{"cpu", 1000 * rng.Between(1, 3)}});
  const auto devices = shares && rng.Chance(0.6)
                           ? std::pair("muster.dev/gpu-milli", 100 * rng.Between(1, 9))
                           : std::pair("nvidia.com/gpu", rng.Between(0, shares ? 3 : 5));
  cluster::AddTo(like.constraints.requests, {{devices.first, devices.second}});
  GiveRandomRules(rng, like);
  for (int i = 0; i < pods; ++i) {
    cluster::PodInfo pod = c.MakePod(name + "-" + std::to_string(i), {});
    pod.labels = like.labels;
    pod.constraints = like.constraints;
    pod.holder = "job " + name;
    if (gang) pod.group = name;
    c.AddPod(std::move(pod));
  }
}

// Plans the unit alone on the cluster without the jobs of these bits.
bool FitsWithout(const cluster::ClusterSnapshot& snapshot, const Unit& unit, unsigned ended) {
  cluster::ClusterSnapshot rest = snapshot;
  for (cluster::PlacementIndex index = 0; index < rest.placement_slots(); ++index) {
    if (rest.At(index).node == cluster::kNoIndex) continue;
    const std::string& holder = rest.Holder(rest.At(index).holder);
    if (holder.starts_with("job r") && (ended >> (holder[5] - '0') & 1) != 0) rest.Remove(index);
  }
  return !Plan(std::move(rest), {unit}, {.explain = false}, Time{}).units[0].assignments.empty();
}

unsigned BitsOf(const std::vector<Holding>& holdings) {
  unsigned bits = 0;
  for (const Holding& holding : holdings) bits |= 1U << (holding.holder[5] - '0');
  return bits;
}

struct Counts {
  int none = 0, one = 0, several = 0, by_rules_only = 0;
};

// What the explanation of unit "w" says, held against all subsets.
void Check(const TestCluster& c, const Unit& unit, const Infeasible& facts, Counts& counts) {
  const cluster::ClusterSnapshot& snapshot = c.cache.snapshot();
  const unsigned named = BitsOf(facts.unblocked_by);
  bool one_suffices = false, some_suffice = false;
  for (unsigned ended = 1; ended < 1U << kJobs; ++ended) {
    if (!FitsWithout(snapshot, unit, ended)) continue;
    some_suffice = true;
    one_suffices |= std::has_single_bit(ended);
  }
  ASSERT_EQ(named != 0, some_suffice);
  if (named == 0) {
    ++counts.none;
    return;
  }
  ASSERT_EQ(facts.why, Infeasible::Why::kNoFit);
  ASSERT_TRUE(FitsWithout(snapshot, unit, named));
  ASSERT_EQ(facts.unblocked_by.size() == 1, one_suffices);
  for (unsigned bit = 1; bit < 1U << kJobs; bit <<= 1) {
    if ((named & bit) != 0 && named != bit) {
      ASSERT_FALSE(FitsWithout(snapshot, unit, named & ~bit));
    }
  }
  ++(facts.unblocked_by.size() == 1 ? counts.one : counts.several);
  counts.by_rules_only += facts.resource.empty();
}

Counts CheckRandomClusters(bool shares) {
  Counts counts;
  for (uint64_t seed = 1; seed <= kSeeds && !testing::Test::HasFatalFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    TestCluster c;
    for (int i = 0; i < 3; ++i) {
      cluster::NodeInfo node =
          c.MakeNode("n" + std::to_string(i), {{"cpu", 8000}, {"nvidia.com/gpu", shares ? 2 : 4}});
      if (shares) cluster::AddTo(node.allocatable, {{"muster.dev/gpu-milli", 2000}});
      node.labels["zone"] = std::to_string(i % 2);
      c.cache.UpsertNode(node);
    }
    for (int i = 0; i < kJobs; ++i) {
      AddRandomJob(c, rng, "r" + std::to_string(i), static_cast<int>(rng.Between(1, 2)), false,
                   shares);
      c.Plan();
    }
    // What did not fit is not there.
    while (!c.pending.empty()) c.Remove(c.pending.begin()->first.name);
    const bool gang = rng.Below(2) == 0;
    AddRandomJob(c, rng, "w", gang ? static_cast<int>(rng.Between(2, 3)) : 1, gang, shares);
    const Unit unit = c.MakeQueue().front();
    if (c.Plan() > 0) continue;
    Check(c, unit, c.WhyNot(unit.name), counts);
  }
  std::printf("result: unblocking%s: %d by one job, %d by several, %d by none; %d by rules alone\n",
              shares ? " where GPUs are shared" : "", counts.one, counts.several, counts.none,
              counts.by_rules_only);
  return counts;
}

TEST(Unblocking, NamesJobsWhoseEndSufficesAndNoneTooMany) {
  const Counts counts = CheckRandomClusters(false);
  EXPECT_GT(counts.none, SeedsOf(100));
  EXPECT_GT(counts.one, SeedsOf(200));
  EXPECT_GT(counts.several, SeedsOf(50));
  EXPECT_GT(counts.by_rules_only, SeedsOf(50));
}

TEST(Unblocking, NamesThoseWhoShareGpusToo) {
  const Counts counts = CheckRandomClusters(true);
  EXPECT_GT(counts.one, SeedsOf(100));
  EXPECT_GT(counts.several, SeedsOf(50));
}

// One zone in which every pod keeps "w" away: no answer names more than may be remembered.
TEST(Unblocking, MoreHoldersInTheWayThanMayEndAreNoAnswer) {
  for (const int others :
       {static_cast<int>(kMaxHoldersTried), static_cast<int>(kMaxHoldersInTheWay) + 1}) {
    TestCluster c;
    cluster::NodeInfo node = c.MakeNode("n0", {{"cpu", 100'000}});
    node.labels["zone"] = "a";
    c.cache.UpsertNode(node);
    for (int i = 0; i < others; ++i) {
      cluster::PodInfo pod = c.MakePod("x" + std::to_string(i), {{"cpu", 100}});
      pod.labels = {{"app", "x"}};
      c.AddPod(std::move(pod));
    }
    c.Plan();
    cluster::PodInfo waits = c.MakePod("w", {{"cpu", 100}});
    waits.constraints.relations.anti_affinity = {TermOf("x", "zone")};
    c.AddPod(std::move(waits));
    c.Plan();
    const size_t expected = others > static_cast<int>(kMaxHoldersTried) ? 0 : kMaxHoldersTried;
    EXPECT_EQ(c.WhyNot("w").unblocked_by.size(), expected);
  }
}

// More nodes than are tried, on which the fewest holders are not enough; the answer is beyond them.
TEST(Unblocking, TriesABoundedNumberOfNodes) {
  for (const size_t decoys : {kMaxNodesTried - 1, kMaxNodesTried}) {
    TestCluster c;
    // A pod of its own job on each decoy keeps "w" away whoever else ends there.
    for (size_t i = 0; i <= decoys; ++i) {
      cluster::NodeInfo node = c.MakeNode("n" + std::to_string(i), {{"cpu", 2000}});
      node.labels["zone"] = std::to_string(i);
      c.cache.UpsertNode(node);
      for (int pod = 0; pod < (i < decoys ? 1 : 2); ++pod) {
        cluster::PodInfo x = c.MakePod("x" + std::to_string(i) + "-" + std::to_string(pod),
                                       {{"cpu", i < decoys ? 1500 : 900}});
        x.constraints.affinity.selector = {{"zone", std::to_string(i)}};
        c.AddPod(std::move(x));
      }
      if (i == decoys) continue;
      cluster::PodInfo own = c.MakePod("own" + std::to_string(i), {{"cpu", 500}});
      own.constraints.affinity.selector = {{"zone", std::to_string(i)}};
      own.labels = {{"app", "own"}};
      own.holder = "job w";
      c.AddPod(std::move(own));
    }
    c.Plan();
    cluster::PodInfo waits = c.MakePod("w", {{"cpu", 1500}});
    waits.holder = "job w";
    waits.constraints.relations.anti_affinity = {TermOf("own", "zone")};
    c.AddPod(std::move(waits));
    c.Plan();
    EXPECT_EQ(c.WhyNot("w").unblocked_by.size(), decoys < kMaxNodesTried ? 2u : 0u);
  }
}

// Two nodes; "a" runs on the first, "b" on the second.
class UnblockingByRules : public testing::Test {
 protected:
  cluster::PodInfo Pod(const std::string& name, const std::string& app) {
    cluster::PodInfo pod = c_.MakePod(name, {{"cpu", 1000}});
    pod.labels = {{"app", app}};
    return pod;
  }
  std::string Why(cluster::PodInfo a, cluster::PodInfo b, cluster::PodInfo waits) {
    for (int i = 0; i < 2; ++i) {
      cluster::NodeInfo node = c_.MakeNode("n" + std::to_string(i), {{"cpu", 8000}});
      node.labels["zone"] = std::to_string(i);
      c_.cache.UpsertNode(node);
    }
    a.constraints.affinity.selector = {{"zone", "0"}};
    b.constraints.affinity.selector = {{"zone", "1"}};
    c_.AddPod(std::move(a));
    c_.AddPod(std::move(b));
    EXPECT_GE(c_.Plan(), 2u);
    const std::string name = waits.name;
    c_.AddPod(std::move(waits));
    EXPECT_EQ(c_.Plan(), 0u);
    return c_.Message(name);
  }
  TestCluster c_;
};

TEST_F(UnblockingByRules, HostPorts) {
  cluster::PodInfo a = Pod("a", "x"), b = Pod("b", "x"), waits = Pod("w", "x");
  for (cluster::PodInfo* pod : {&a, &b, &waits})
    pod->constraints.relations.ports = {{"0.0.0.0", "TCP", 80}};
  EXPECT_EQ(Why(a, b, waits),
            "0/2 nodes are available: 2 node(s) didn't have free ports for the requested pod ports."
            " It fits when pod default/a ends.");
}

TEST_F(UnblockingByRules, AntiAffinityOfEitherSide) {
  cluster::PodInfo a = Pod("a", "x"), waits = Pod("w", "y");
  waits.constraints.relations.anti_affinity = {TermOf("x", "zone")};
  cluster::PodInfo b = Pod("b", "z");
  b.constraints.relations.anti_affinity = {TermOf("y", "zone")};
  EXPECT_EQ(Why(a, b, waits),
            "0/2 nodes are available: 1 node(s) didn't match pod anti-affinity rules, 1 node(s) "
            "didn't satisfy existing pods anti-affinity rules. It fits when pod default/a ends.");
}

TEST_F(UnblockingByRules, Spread) {
  cluster::PodInfo waits = Pod("w", "x");
  waits.constraints.relations.spread.emplace_back().term = TermOf("x", "zone");
  waits.constraints.affinity.selector = {{"zone", "0"}};
  waits.constraints.relations.spread.front().honor_affinity = false;
  EXPECT_EQ(Why(Pod("a", "x"), Pod("b", "y"), waits),
            "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 "
            "node(s) didn't match pod topology spread constraints. It fits when pod default/a "
            "ends.");
}

// A node lacks cpu and has a taken port: both have to end.
TEST_F(UnblockingByRules, BesideAmounts) {
  cluster::PodInfo a = Pod("a", "x"), waits = Pod("w", "x");
  a.constraints.relations.ports = waits.constraints.relations.ports = {{"0.0.0.0", "TCP", 80}};
  waits.constraints.affinity.selector = {{"zone", "0"}};
  cluster::AddTo(waits.constraints.requests, {{"cpu", 5000}});
  cluster::PodInfo c = c_.MakePod("c", {{"cpu", 6000}});
  c.constraints.affinity.selector = {{"zone", "0"}};
  c_.AddPod(c);
  EXPECT_EQ(Why(a, Pod("b", "x"), waits),
            "0/2 nodes are available: 1 node(s) didn't have free ports for the requested pod ports,"
            " 1 node(s) didn't match Pod's node affinity/selector. It fits when pod default/a and "
            "pod default/c end.");
}

}  // namespace
}  // namespace muster::scheduler
