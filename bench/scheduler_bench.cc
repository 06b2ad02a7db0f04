// bench/scheduler_bench.cc
//
// Decisions per second of the planner (design section 8): 10,000 pods on 5,000 nodes, with one
// shape of pod or 2,000 shapes on 50 kinds of node, without and with GPUs; 5,000 pods beside 5,000
// running ones with required affinity, anti-affinity, topology spread or a host port (the shapes of
// upstream's scheduler_perf; the floor for affinity is 5,000/s); the same with preferences
// (preference_shapes.h); and the time of one gang of 5,000 pods on 5,000 nodes.
//
//   scheduler_bench [--short]      Prints `name value unit` lines.
//
// A decision is a pod placed on a node with its devices chosen: sorting the queue, copying the
// snapshot and filling the plan are inside the measurement; explanations are not (nothing is
// refused), and it CHECKs that every pod was placed.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "base/check.h"
#include "base/time.h"
#include "plan_timing.h"
#include "preemption_bench.h"
#include "preference_shapes.h"
#include "scheduler/planner.h"
#include "scheduler/test_cluster.h"

namespace muster::scheduler {
namespace {

constexpr int64_t kMi = int64_t{1} << 20;
constexpr int kNodes = 5'000;
constexpr int kPods = 10'000;
constexpr int kKinds = 50;
constexpr int kShapes = 2'000;

void AddNodes(TestCluster& cluster, int kinds, bool gpus) {
  for (int i = 0; i < kNodes; ++i) {
    const int kind = i % kinds;
    cluster::ResourceList offer = {{"cpu", 16'000 + 1'000 * kind},
                                   {"memory", (64 + 4 * kind) * 1024 * kMi}};
    if (gpus) cluster::AddTo(offer, {{"nvidia.com/gpu", 8}});
    cluster::NodeInfo node = cluster.MakeNode("n" + std::to_string(i), offer);
    node.labels["kind"] = std::to_string(kind);
    cluster.cache.UpsertNode(std::move(node));
  }
}

void AddPods(TestCluster& cluster, int shapes, bool gpus) {
  for (int i = 0; i < kPods; ++i) {
    // Shapes come interleaved: the order that gives caches the least.
    const int shape = i % shapes;
    cluster::ResourceList wants = {{"cpu", 100 + shape}, {"memory", 256 * kMi + shape * 64 * 1024}};
    if (gpus) cluster::AddTo(wants, {{"nvidia.com/gpu", shapes == 1 ? 1 : 1 + shape % 4}});
    cluster.AddPod("p" + std::to_string(i), wants);
  }
}

int rounds = 7;

void BenchDecisions(std::string_view name, int shapes, int kinds, bool gpus) {
  TestCluster cluster;
  AddNodes(cluster, kinds, gpus);
  AddPods(cluster, shapes, gpus);
  fmt::print("{} {:.0f} 1/s\n", name, kPods / PlanSeconds(cluster, kPods, rounds));
}

enum class Relation : uint8_t { kAffinity, kAntiAffinity, kSpread, kPort };

cluster::PodInfo MakeRelated(TestCluster& cluster, const std::string& name, Relation relation) {
  cluster::PodInfo pod = cluster.MakePod(name, {{"cpu", 100}, {"memory", 256 * kMi}});
  pod.labels = {{"app", "web"}};
  cluster::PodTerm term;
  term.pods.namespaces = {pod.ns};
  term.pods.labels = schema::LabelSelector({{"app", schema::LabelOperator::kIn, {"web"}}});
  term.topology_key = relation == Relation::kAntiAffinity ? "kubernetes.io/hostname" : "zone";
  cluster::PodRelations& relations = pod.constraints.relations;
  if (relation == Relation::kAffinity) relations.affinity.push_back(term);
  if (relation == Relation::kAntiAffinity) relations.anti_affinity.push_back(term);
  if (relation == Relation::kSpread) relations.spread.push_back({term, 1});
  if (relation == Relation::kPort) relations.ports.push_back({"0.0.0.0", "TCP", 80});
  return pod;
}

// Half of the pods run already, where two of them may share a node.
void BenchRelated(std::string_view name, Relation relation, int nodes) {
  TestCluster cluster;
  for (int i = 0; i < nodes; ++i) {
    cluster::NodeInfo node =
        cluster.MakeNode("n" + std::to_string(i), {{"cpu", 16'000}, {"memory", 64 * 1024 * kMi}});
    node.labels["zone"] = std::to_string(i % 10);
    cluster.cache.UpsertNode(std::move(node));
  }
  const bool alone = relation == Relation::kAntiAffinity || relation == Relation::kPort;
  for (int i = 0; i < (alone ? 0 : kNodes); ++i)
    cluster.AddPod(MakeRelated(cluster, "r" + std::to_string(i), relation));
  cluster.Plan();
  for (int i = 0; i < kNodes; ++i)
    cluster.AddPod(MakeRelated(cluster, "p" + std::to_string(i), relation));
  fmt::print("{} {:.0f} 1/s\n", name, kNodes / PlanSeconds(cluster, kNodes, rounds));
}

void BenchPreferring(std::string_view name, Preference preference, int nodes) {
  TestCluster cluster;
  FillPreferring(cluster, preference, nodes, kNodes);
  fmt::print("{} {:.0f} 1/s\n", name, kNodes / PlanSeconds(cluster, kNodes, rounds));
}

void BenchGang() {
  TestCluster cluster;
  AddNodes(cluster, 1, true);
  cluster.AddGang("g", kNodes, kNodes, {{"cpu", 1000}, {"nvidia.com/gpu", 8}});
  fmt::print("gang_5000_seconds {:.4f} s\n", PlanSeconds(cluster, kNodes, rounds));
}

// 10,000 pods of 2,000 shapes wait on a full cluster: what a plan costs that places nothing and
// explains everything.
void BenchNothingFits() {
  TestCluster cluster;
  AddNodes(cluster, kKinds, true);
  for (int i = 0; i < kNodes; ++i)
    cluster.AddPod("full" + std::to_string(i), {{"nvidia.com/gpu", 8}});
  CHECK(cluster.Plan() == kNodes);
  AddPods(cluster, kShapes, true);
  fmt::print("nothing_fits_seconds {:.4f} s\n", PlanSeconds(cluster, 0, rounds));
}

// What a plan holds the loop for.
void BenchSnapshot() {
  TestCluster cluster;
  AddNodes(cluster, kKinds, true);
  AddPods(cluster, kShapes, true);
  const double queue = BestSeconds(rounds, [&] { CHECK(cluster.MakeQueue().size() == kPods); });
  cluster.Plan();
  const double copy = BestSeconds(rounds, [&] {
    const cluster::ClusterSnapshot snapshot = cluster.cache.snapshot();
    CHECK(snapshot.node_count() == kNodes);
  });
  fmt::print("queue_10000_seconds {:.5f} s\nsnapshot_copy_seconds {:.5f} s\n", queue, copy);
}

}  // namespace
}  // namespace muster::scheduler

int main(int argc, char** argv) {
  namespace bench = muster::scheduler;
  if (argc > 1 && std::string_view(argv[1]) == "--short") bench::rounds = 3;
  bench::BenchDecisions("one_shape", 1, 1, false);
  bench::BenchDecisions("many_shapes", bench::kShapes, bench::kKinds, false);
  bench::BenchDecisions("one_shape_gpu", 1, 1, true);
  bench::BenchDecisions("many_shapes_gpu", bench::kShapes, bench::kKinds, true);
  using bench::Relation;
  bench::BenchRelated("pod_affinity", Relation::kAffinity, bench::kNodes);
  bench::BenchRelated("pod_affinity_50000_nodes", Relation::kAffinity, 10 * bench::kNodes);
  bench::BenchRelated("pod_anti_affinity", Relation::kAntiAffinity, bench::kNodes);
  bench::BenchRelated("topology_spread", Relation::kSpread, bench::kNodes);
  bench::BenchRelated("host_ports", Relation::kPort, bench::kNodes);
  using bench::Preference;
  bench::BenchPreferring("node_affinity", Preference::kRequiredNodes, bench::kNodes);
  bench::BenchPreferring("preferred_node_affinity", Preference::kNodes, bench::kNodes);
  bench::BenchPreferring("preferred_pod_affinity", Preference::kPodAffinity, bench::kNodes);
  bench::BenchPreferring("preferred_anti_affinity", Preference::kPodAntiAffinity, bench::kNodes);
  bench::BenchPreferring("preferred_spread", Preference::kSpread, bench::kNodes);
  bench::BenchPreferring("spread_profile", Preference::kProfile, bench::kNodes);
  bench::BenchPreferring("spread_profile_50000_nodes", Preference::kProfile, 10 * bench::kNodes);
  bench::BenchPreferring("images", Preference::kImages, bench::kNodes);
  bench::BenchGang();
  bench::BenchNothingFits();
  bench::BenchSnapshot();
  bench::BenchPreemption(bench::rounds);
  return 0;
}
