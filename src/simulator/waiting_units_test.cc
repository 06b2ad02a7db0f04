#include "simulator/waiting_units.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/rng.h"
#include "scheduler/test_cluster.h"

namespace muster::simulator {
namespace {

using scheduler::Queue;
using scheduler::TestCluster;

// Unit -> the nodes of its pods.
std::map<std::string, std::vector<std::string>> PlacesOf(const TestCluster& c, const Queue& queue) {
  std::map<std::string, std::vector<std::string>> places;
  const scheduler::PlanResult plan =
      scheduler::Plan(c.cache.snapshot(), queue, {.explain = false}, Time{});
  for (const scheduler::UnitPlan& unit : plan.units) {
    for (const scheduler::Assignment& assignment : unit.assignments)
      places[queue[unit.unit].name].push_back(assignment.node);
  }
  return places;
}

// Jobs of a few shapes, some with ports or other pods to keep away from, on a partly used cluster.
void AddRandomJob(TestCluster& c, Rng& rng, int index) {
  const auto gpus = static_cast<int64_t>(rng.Below(5));
  const cluster::ResourceList requests = {{"cpu", 1000}, {"nvidia.com/gpu", gpus}};
  const std::string name = "j" + std::to_string(index);
  if (rng.Below(3) == 0) return c.AddGang(name, 3, 3, requests, static_cast<int64_t>(rng.Below(2)));
  cluster::PodInfo pod = c.MakePod(name, requests);
  pod.labels = {{"app", rng.Below(2) == 0 ? "x" : "y"}};
  cluster::PodRelations& relations = pod.constraints.relations;
  if (rng.Below(6) == 0) relations.ports = {{"0.0.0.0", "TCP", 80}};
  if (rng.Below(6) == 0) {
    cluster::PodTerm term;
    term.pods.labels = schema::LabelSelector({{"app", schema::LabelOperator::kIn, {"x"}}});
    term.pods.namespaces = {"default"};
    term.topology_key = std::string(cluster::kHostnameLabel);
    (rng.Below(2) == 0 ? relations.affinity : relations.anti_affinity).push_back(term);
  }
  c.AddPod(std::move(pod));
}

TEST(WaitingUnits, APlanOfTheFirstOfEachClassIsThePlanOfAll) {
  size_t placed = 0, left_out = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Rng rng(seed);
    TestCluster c;
    c.AddNodes(3, {{"cpu", 16000}, {"nvidia.com/gpu", 8}});
    for (int i = 0; i < 10; ++i) AddRandomJob(c, rng, i);
    c.Plan();
    for (int i = 10; i < 40; ++i) AddRandomJob(c, rng, i);
    WaitingUnits waiting;
    for (const scheduler::Unit& unit : c.MakeQueue()) waiting.Add(unit, c.cache.snapshot());
    const Queue all = waiting.All(), some = waiting.WorthATry(c.cache.snapshot());
    const auto places = PlacesOf(c, all);
    ASSERT_EQ(PlacesOf(c, some), places) << "seed " << seed;
    placed += places.size();
    left_out += all.size() - some.size();
  }
  EXPECT_GT(placed, 300u);
  EXPECT_GT(left_out, 1000u);
}

TEST(WaitingUnits, KeepsTheOrderOfTheQueue) {
  TestCluster c;
  c.AddPod("a", {{"cpu", 1000}});
  c.AddPod("b", {{"cpu", 2000}});
  c.AddGang("g", 2, 2, {{"cpu", 1000}}, 7);
  WaitingUnits waiting;
  for (const scheduler::Unit& unit : c.MakeQueue()) waiting.Add(unit, c.cache.snapshot());
  EXPECT_EQ(waiting.size(), 3u);
  for (const char* name : {"g", "a", "b"}) {
    EXPECT_EQ(waiting.First().name, name);
    waiting.Remove(scheduler::Unit(waiting.First()));
  }
  EXPECT_EQ(waiting.size(), 0u);
  EXPECT_TRUE(waiting.WorthATry(c.cache.snapshot()).empty());
}

}  // namespace
}  // namespace muster::simulator
