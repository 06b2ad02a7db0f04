#include "preemption_bench.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "base/check.h"
#include "base/time.h"
#include "plan_timing.h"
#include "scheduler/planner.h"
#include "scheduler/preemption_facts.h"
#include "scheduler/test_cluster.h"

namespace muster::scheduler {

namespace {

constexpr int kLowPerNode = 4;

// `guarded`: a disruption budget that lets nobody go protects every other pod of low priority.
void BenchShape(std::string_view name, int nodes, bool guarded, int rounds) {
  TestCluster cluster;
  cluster.AddNodes(nodes, {{"cpu", 4'000}});
  for (int i = 0; i < nodes * kLowPerNode; ++i) {
    cluster::PodInfo pod = cluster.MakeRunning(
        fmt::format("low{}", i), fmt::format("n{}", i / kLowPerNode), 0, {{"cpu", 900}});
    pod.labels = {{"app", i % 2 == 0 ? "guarded" : "free"}};
    cluster.AddPod(std::move(pod));
  }
  for (int i = 0; i < nodes; ++i) cluster.AddPreemptor(fmt::format("p{}", i), 10, {{"cpu", 1'500}});
  const Queue queue = cluster.MakeQueue();
  PreemptionFacts facts = MakePreemptionFacts(cluster.cache, {});
  if (guarded) {
    facts.budgets.push_back({"default", schema::LabelSelector::Parse("app=guarded").value(), 0});
  }
  PlannerConfig config;
  config.explain = false;
  const double best = BestSeconds(rounds, [&] {
    const PlanResult result = Plan(cluster.cache.snapshot(), queue, config, Time{}, facts);
    size_t victims = 0;
    for (const UnitPlan& unit : result.units) {
      CHECK(unit.room == PreemptionPlanner::Outcome::kRoom);
      victims += unit.preemption.victims.size();
    }
    CHECK(victims >= static_cast<size_t>(nodes));
  });
  fmt::print("{} {:.0f} 1/s\n", name, nodes / best);
}

}  // namespace

void BenchPreemption(int rounds) {
  BenchShape("preemption_1000_nodes", 1'000, false, rounds);
  BenchShape("preemption_5000_nodes", 5'000, false, rounds);
  BenchShape("preemption_budget", 1'000, true, std::min(rounds, 3));
}

}  // namespace muster::scheduler
