// Random pods and pools: what must hold of every plan, and the price of one pod against all types.

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "autoscaler/scale_up_planner.h"
#include "base/check.h"
#include "base/rng.h"
#include "json/parse.h"
#include "scheduler/test_cluster.h"

namespace muster::autoscaler {
namespace {

constexpr char kGpu[] = "nvidia.com/gpu";
constexpr int64_t kGiB = int64_t{1} << 30;

NodePool RandomPool(Rng& rng, const std::string& name) {
  const char* families[] = {"[g4dn, g5, m5]", "[g5, p4d]", "[c5, m5, r5]", "[g6, p5, p5en]"};
  std::string text = "{metadata: {name: " + name +
                     "}, spec: {template: {spec: {requirements: [{key: "
                     "karpenter.k8s.aws/instance-family, operator: In, values: " +
                     families[rng.Below(4)] + "}";
  if (rng.Below(2) == 0)
    text += ", {key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand]}";
  text += "]}}, weight: " + std::to_string(1 + rng.Below(2)) + ", limits: {";
  if (rng.Below(2) == 0) text += "nvidia.com/gpu: " + std::to_string(rng.Below(40)) + ", ";
  if (rng.Below(2) == 0) text += "cpu: " + std::to_string(rng.Below(400)) + ", ";
  text += "nodes: " + std::to_string(rng.Below(12)) + "}}}";
  const auto documents = json::ParseYaml(text);
  CHECK(documents.has_value());
  return ToNodePool((*documents)[0]);
}

cluster::ResourceList RandomRequests(Rng& rng) {
  cluster::ResourceList requests = {{"cpu", static_cast<int64_t>(100 + rng.Below(9'000))},
                                    {"memory", static_cast<int64_t>(1 + rng.Below(40)) * kGiB}};
  if (rng.Below(2) == 0) requests.emplace_back(kGpu, static_cast<int64_t>(1) << rng.Below(4));
  return requests;
}

struct Case {
  explicit Case(uint64_t seed) : rng(seed) {
    const size_t count = 1 + rng.Below(3);
    for (size_t i = 0; i < count; ++i) pools.push_back(RandomPool(rng, "p" + std::to_string(i)));
    used.resize(pools.size());
    offerings = OfferingsOf(pools, cluster::BuiltInInstanceTypes(), {});
  }
  ScaleUp Plan() {
    return PlanScaleUp(cluster.cache.snapshot(), cluster.MakeQueue(), pools, offerings, used);
  }
  Rng rng;
  std::vector<NodePool> pools;
  std::vector<cluster::ResourceList> used;
  std::vector<Offering> offerings;
  scheduler::TestCluster cluster;
};

TEST(ScaleUpProperties, LimitsHoldAndGangsAreWhole) {
  size_t added = 0, refused = 0, whole_gangs = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    Case c(seed);
    std::map<std::string, size_t> gangs;
    const size_t units = 1 + c.rng.Below(6);
    for (size_t i = 0; i < units; ++i) {
      const std::string name = "u" + std::to_string(i);
      if (c.rng.Below(2) == 0) {
        c.cluster.AddPod(name, RandomRequests(c.rng));
      } else {
        gangs[name] = 2 + c.rng.Below(4);
        c.cluster.AddGang(name, static_cast<int64_t>(gangs[name]), static_cast<int>(gangs[name]),
                          RandomRequests(c.rng));
      }
    }
    const ScaleUp plan = c.Plan();
    std::map<std::string, size_t> placed;  // by gang
    for (const NewNode& node : plan.nodes) {
      const Offering& offering = c.offerings[node.offering];
      cluster::AddTo(c.used[offering.pool], offering.has);
      EXPECT_FALSE(node.pods.empty()) << "a machine that nobody needs";
      for (const cluster::PodKey& pod : node.pods) ++placed[pod.name.substr(0, pod.name.find('-'))];
    }
    added += plan.nodes.size();
    for (size_t pool = 0; pool < c.pools.size(); ++pool) {
      for (const auto& [resource, limit] : c.pools[pool].limits)
        EXPECT_LE(cluster::AmountOf(c.used[pool], resource), limit) << resource;
    }
    for (const UnitVerdict& verdict : plan.units) {
      const std::string& name = verdict.unit.key.name;
      // Each is served, or told why not.
      EXPECT_NE(verdict.why_not.empty(), verdict.nodes.empty() && !verdict.fits) << name;
      refused += verdict.why_not.empty() ? 0 : 1;
      if (!verdict.unit.is_gang || verdict.fits) continue;
      if (!verdict.why_not.empty()) {
        EXPECT_EQ(placed[name], 0u) << name;
      }
      whole_gangs += verdict.why_not.empty() ? 1 : 0;
    }
  }
  EXPECT_GT(added, 100u);
  EXPECT_GT(refused, 25u);
  EXPECT_GT(whole_gangs, 25u);
}

// Against all types one by one.
TEST(ScaleUpProperties, OnePodGetsTheCheapestMachineOfTheHeaviestPoolThatTakesIt) {
  size_t served = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(seed);
    Case c(seed);
    const cluster::ResourceList requests = RandomRequests(c.rng);
    c.cluster.AddPod("a", requests);
    std::optional<std::pair<int64_t, cluster::MicroUsd>> best;  // -weight, price
    for (const Offering& offering : c.offerings) {
      const auto fits_in = [](const cluster::ResourceList& wanted,
                              const cluster::ResourceList& has) {
        return std::ranges::all_of(wanted, [&has](const auto& each) {
          return cluster::AmountOf(has, each.first) >= each.second;
        });
      };
      const NodePool& pool = c.pools[offering.pool];
      const bool within = std::ranges::all_of(pool.limits, [&offering](const auto& limit) {
        return cluster::AmountOf(offering.has, limit.first) <= limit.second;
      });
      if (!within || !fits_in(requests, offering.node->allocatable)) continue;
      const std::pair<int64_t, cluster::MicroUsd> here{-pool.weight, offering.price};
      if (!best || here < *best) best = here;
    }
    const ScaleUp plan = c.Plan();
    ASSERT_EQ(plan.nodes.size(), best ? 1u : 0u);
    if (!best) continue;
    ++served;
    EXPECT_EQ(c.offerings[plan.nodes[0].offering].price, best->second);
    EXPECT_EQ(-c.pools[c.offerings[plan.nodes[0].offering].pool].weight, best->first);
  }
  EXPECT_GT(served, 50u);
}

}  // namespace
}  // namespace muster::autoscaler
