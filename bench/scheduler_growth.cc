// bench/scheduler_growth.cc
//
// How the planner grows: more nodes, more gangs, more that waits, and how much it remembers.
//
//   scheduler_growth [--short]     Prints `name value unit` lines; shapes after upstream's
//                                  scheduler_perf (reference scheduling.md, 1.1), on 5,000 nodes
//                                  unless the name says otherwise.
//
//   gangs_AxB               A gangs of B pods
//   beside_20000_waiting    10,000 pods that fit while 20,000 wait that do not; those are explained
//                           as in production
//   churn                   100 pods end and 100 come, planned at once, over and over: by pod that
//                           came, the cache's part included
//   nodes_N, nodes_N_many   10,000 pods on N nodes, one shape and 2,000 shapes on 50 kinds of node
//   state_mb_per_100000     resident memory of the cache with 100,000 pods placed on 5,000 nodes

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "base/check.h"
#include "base/time.h"
#include "plan_timing.h"
#include "scheduler/planner.h"
#include "scheduler/test_cluster.h"

namespace muster::scheduler {
namespace {

constexpr int64_t kMi = int64_t{1} << 20;
constexpr int kNodes = 5'000;
constexpr int kPods = 10'000;
constexpr int kKinds = 50;
constexpr int kShapes = 2'000;

int rounds = 3;

const PlannerConfig kUnexplained = {.explain = false};

void AddNodes(TestCluster& cluster, int count, int kinds, int64_t gpus) {
  for (int i = 0; i < count; ++i) {
    const int kind = i % kinds;
    cluster::ResourceList offer = {{"cpu", 64'000 + 1'000 * kind},
                                   {"memory", (256 + 4 * kind) * 1024 * kMi}};
    if (gpus > 0) cluster::AddTo(offer, {{"nvidia.com/gpu", gpus}});
    cluster::NodeInfo node = cluster.MakeNode("n" + std::to_string(i), offer);
    node.labels["kind"] = std::to_string(kind);
    cluster.cache.UpsertNode(std::move(node));
  }
}

cluster::ResourceList Wants(int shape) {
  return {{"cpu", 100 + shape}, {"memory", 256 * kMi + shape * 64 * 1024}};
}

void BenchGangs(int gangs, int pods) {
  TestCluster cluster;
  AddNodes(cluster, kNodes, 1, 16);
  for (int i = 0; i < gangs; ++i)
    cluster.AddGang("g" + std::to_string(i), pods, pods, {{"cpu", 1000}, {"nvidia.com/gpu", 1}});
  const int total = gangs * pods;
  fmt::print("gangs_{}x{} {:.0f} 1/s\n", gangs, pods,
             total / PlanSeconds(cluster, static_cast<size_t>(total), rounds, kUnexplained));
}

void BenchBesideWaiting() {
  TestCluster cluster;
  AddNodes(cluster, kNodes, 1, 0);
  for (int i = 0; i < 2 * kPods; ++i) cluster.AddPod("w" + std::to_string(i), {{"cpu", 1'000'000}});
  for (int i = 0; i < kPods; ++i) cluster.AddPod("p" + std::to_string(i), Wants(0));
  fmt::print("beside_20000_waiting {:.0f} 1/s\n", kPods / PlanSeconds(cluster, kPods, rounds));
}

void BenchChurn() {
  constexpr int kBatch = 100;
  TestCluster cluster;
  AddNodes(cluster, kNodes, kKinds, 8);
  const auto name = [](int i) { return "p" + std::to_string(i); };
  const auto add = [&](int i) {
    cluster::ResourceList wants = Wants(i % 20);
    cluster::AddTo(wants, {{"nvidia.com/gpu", 1 + i % 4}});
    cluster.AddPod(name(i), wants);
  };
  for (int i = 0; i < kPods; ++i) add(i);
  CHECK(cluster.Plan() == kPods);
  const int batches = rounds * 10;
  const Duration start = RealClock().Monotonic();
  for (int i = 0; i < batches * kBatch; ++i) {
    cluster.Remove(name(i));
    add(kPods + i);
    if (i % kBatch != kBatch - 1) continue;
    CHECK(cluster.Plan() == kBatch);
    cluster.config.packing = cluster.result.packing;
  }
  fmt::print("churn {:.0f} 1/s\n", batches * kBatch / SecondsSince(start));
}

void BenchGrowth(int nodes) {
  for (const bool many : {false, true}) {
    TestCluster cluster;
    AddNodes(cluster, nodes, many ? kKinds : 1, 0);
    for (int i = 0; i < kPods; ++i)
      cluster.AddPod("p" + std::to_string(i), Wants(many ? i % kShapes : 0));
    fmt::print("nodes_{}{} {:.0f} 1/s\n", nodes, many ? "_many" : "",
               kPods / PlanSeconds(cluster, kPods, rounds, kUnexplained));
  }
}

double ResidentMb() {
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  CHECK(file != nullptr);
  long total = 0, resident = 0;
  CHECK(std::fscanf(file, "%ld %ld", &total, &resident) == 2);
  std::fclose(file);
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

// The pods and nodes alone, as the informers' events make them; plans are copies.
void BenchState() {
  constexpr int kMany = 100'000;
  const double before = ResidentMb();
  TestCluster cluster;
  AddNodes(cluster, kNodes, kKinds, 0);
  const double with_nodes = ResidentMb();
  for (int i = 0; i < kMany; ++i) {
    cluster::PodInfo pod = cluster.MakePod("pod-" + std::to_string(i), Wants(i % 100));
    pod.node_name = "n" + std::to_string(i % kNodes);
    pod.phase = cluster::PodPhase::kRunning;
    pod.labels = {{"app", "a" + std::to_string(i % 100)}};
    cluster.AddPod(std::move(pod));
  }
  fmt::print("state_mb_per_100000 {:.1f} MB\nstate_mb_5000_nodes {:.1f} MB\n",
             ResidentMb() - with_nodes, with_nodes - before);
}

}  // namespace
}  // namespace muster::scheduler

int main(int argc, char** argv) {
  namespace bench = muster::scheduler;
  const bool is_short = argc > 1 && std::string_view(argv[1]) == "--short";
  if (is_short) bench::rounds = 1;
  bench::BenchState();
  bench::BenchGangs(3000, 3);
  bench::BenchGangs(9, 1000);
  bench::BenchGangs(10, 5000);
  bench::BenchBesideWaiting();
  bench::BenchChurn();
  for (const int nodes : {1'000, 5'000, 20'000, 50'000}) bench::BenchGrowth(nodes);
  return 0;
}
