// On thousands of random small clusters the filters and their plain second implementation must give
// the same verdict for every node and the same reasons, while pods are placed and taken away.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/seeds_test_support.h"
#include "scheduler/failures.h"
#include "scheduler/node_finder.h"
#include "scheduler/random_cluster_test_support.h"
#include "scheduler/rules.h"

namespace muster::scheduler {
namespace {

using json::Value;

constexpr int64_t kSeeds = SeedsOf(5'000);

std::vector<std::string> OurReasons(PodRules& pod_rules, const cluster::PodRecord& pod,
                                    cluster::NodeIndex node) {
  const cluster::ClusterSnapshot& snapshot = pod_rules.snapshot();
  const cluster::Shape& shape = snapshot.Shape(pod.shape);
  NodeFilter filter(snapshot, shape);
  const LookIndex look = pod_rules.LookOf(pod.shape, pod.identity);
  RuleVerdict verdict = filter.Check(node);
  const std::string fault(pod_rules.volumes().Fault(pod.shape));
  if (!fault.empty()) return {fault};
  if (verdict.rule == Rule::kPasses) verdict.rule = pod_rules.CheckPorts(look, node);
  if (verdict.rule == Rule::kPasses && !snapshot.FitsAmounts(shape, node)) {
    std::vector<std::string> out;
    for (const char* name : {"cpu", "memory", "nvidia.com/gpu", "pods"}) {
      const cluster::ResourceIndex resource = snapshot.FindResource(name);
      if (shape.AmountOf(resource) <= 0) continue;
      if (snapshot.Free(node, resource) >= shape.AmountOf(resource)) continue;
      out.push_back(std::string(name) == "pods" ? "Too many pods"
                                                : fmt::format("Insufficient {}", name));
    }
    return out;
  }
  if (verdict.rule != Rule::kPasses) return {ReasonText(verdict)};
  std::vector<std::string> out;
  const std::vector<Rule> failed = pod_rules.FailedRules(look, node);
  for (const Rule rule : failed) out.push_back(ReasonText({rule, nullptr}));
  EXPECT_EQ(pod_rules.CheckTopology(look, node), out.empty() ? Rule::kPasses : failed.front());
  return out;
}

using Counts = std::map<std::string, int64_t>;  // nodes by reason

// Of claims and volumes.
std::string WithoutNames(const std::string& reason) {
  if (reason.starts_with("PVC ")) return "PVC was not created for pod";
  std::string out;
  bool quoted = false;
  for (const char c : reason) {
    if (c == '"') quoted = !quoted;
    if (!quoted && c != '"') out += c;
  }
  return out.substr(0, 60);
}

// Every node, the counts of all nodes, and the choice. Returns the chosen node.
cluster::NodeIndex Compare(const RandomCluster& random, NodeFinder& finder, const Value& pod,
                           Counts& seen) {
  const cluster::PodRecord& record = random.Record(pod);
  Counts counts;
  std::set<cluster::NodeIndex> feasible;
  for (cluster::NodeIndex index = 0; index < random.world.nodes.size(); ++index) {
    const Value& node = random.world.nodes[index];
    const std::vector<std::string> expected = plain::Reasons(random.world, pod, node);
    EXPECT_EQ(OurReasons(finder.pod_rules(), record, index), expected)
        << node["metadata"]["name"].Str() << " for " << pod["metadata"]["name"].Str();
    for (const std::string& reason : expected) ++counts[reason];
    if (expected.empty()) feasible.insert(index);
  }
  Counts ours;
  for (const RuleCount& count :
       CountFailures(finder.pod_rules(), record.shape, record.identity).by_rule)
    ours[count.reason] = count.nodes;
  EXPECT_EQ(ours, counts);
  for (const auto& [reason, nodes] : counts) seen[WithoutNames(reason)] += nodes;
  seen["feasible"] += static_cast<int64_t>(feasible.size());

  const cluster::NodeIndex best = finder.Best(record.shape, record.identity);
  // Which volumes were chosen for those that are placed is not in the snapshot: with storage
  // another finder may choose others.
  cluster::ClusterSnapshot copy = finder.snapshot();
  if (!random.world.storage.kept) {
    EXPECT_EQ(best, NodeFinder(copy).Best(record.shape, record.identity));
  }
  EXPECT_EQ(best != cluster::kNoIndex, !feasible.empty());
  EXPECT_TRUE(best == cluster::kNoIndex || feasible.contains(best));
  return best;
}

// The reasons seen.
Counts CompareAll(int64_t seeds, bool with_storage) {
  Counts seen;
  for (int seed = 1; seed <= seeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    RandomCluster random(static_cast<uint64_t>(seed), with_storage);
    random.Play(10, [&](NodeFinder& finder, const Value& pod) {
      return Compare(random, finder, pod, seen);
    });
  }
  if (testing::Test::HasFailure()) return seen;
  for (const auto& [reason, nodes] : seen) {
    fmt::print("result: oracle {} {}\n", nodes, reason);
    EXPECT_GT(nodes, kSeeds / 50) << reason;
  }
  return seen;
}

TEST(FeasibilityOracle, AgreesOnEveryNodeAndReasonWhilePodsComeAndGo) {
  EXPECT_GE(CompareAll(kSeeds, false).size(), 16u);
}

TEST(FeasibilityOracle, AgreesOnPodsWithClaims) {
  const Counts seen = CompareAll(kSeeds, true);
  EXPECT_GE(seen.size(), 28u);
}

}  // namespace
}  // namespace muster::scheduler
