#include "autoscaler/scale_up_planner.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/check.h"
#include "json/parse.h"
#include "scheduler/test_cluster.h"

namespace muster::autoscaler {
namespace {

constexpr char kGpu[] = "nvidia.com/gpu";
constexpr int64_t kGiB = int64_t{1} << 30;

json::Value Yaml(const std::string& text) {
  auto documents = json::ParseYaml(text);
  CHECK(documents.has_value() && documents->size() == 1);
  return (*documents)[0];
}

NodePool Pool(const std::string& name, const std::string& requirements,
              const std::string& more = "", const std::string& more_template = "") {
  return ToNodePool(Yaml("{metadata: {name: " + name + ", uid: u-" + name +
                         "}, spec: {template: {spec: {requirements: " + requirements +
                         more_template + "}}" + more + "}}"));
}

class ScaleUpTest : public testing::Test {
 protected:
  const ScaleUp& Plan() {
    const std::vector<Offering> offerings =
        OfferingsOf(pools_, cluster::BuiltInInstanceTypes(), daemons_);
    offerings_ = offerings;
    used_.resize(pools_.size());
    plan_ = PlanScaleUp(cluster_.cache.snapshot(), cluster_.MakeQueue(), pools_, offerings_, used_,
                        config_);
    return plan_;
  }
  // "2 g5.xlarge (on-demand, 1.006 USD/h)", by name.
  std::string Added() {
    Plan();
    std::map<std::string, int> counts;
    for (const NewNode& node : plan_.nodes) ++counts[TextOf(offerings_[node.offering])];
    std::string text;
    for (const auto& [kind, count] : counts)
      text += (text.empty() ? "" : " + ") + std::to_string(count) + " " + kind;
    return text;
  }
  std::string WhyNot(const std::string& unit) const {
    for (const UnitVerdict& verdict : plan_.units) {
      if (verdict.unit.key.name == unit) return verdict.why_not;
    }
    return "not looked at";
  }

  scheduler::TestCluster cluster_;
  std::vector<NodePool> pools_;
  std::vector<Daemon> daemons_;
  std::vector<cluster::ResourceList> used_;
  std::vector<Offering> offerings_;
  ScaleUpConfig config_;
  ScaleUp plan_;
};

constexpr char kG5AndP4d[] =
    "[{key: karpenter.k8s.aws/instance-family, operator: In, values: [g5, p4d]}]";
constexpr char kAnyCapacity[] =
    "[{key: karpenter.k8s.aws/instance-family, operator: In, values: [g5, p4d]}, "
    "{key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand]}]";
constexpr char kCpuOnly[] =
    "[{key: karpenter.k8s.aws/instance-category, operator: In, values: [m, c]}]";

// The example of practical-guide: one GPU and 32 GB of memory.
TEST_F(ScaleUpTest, OneGpuAnd32GbAreAG52xlargeAndNotAP4d) {
  pools_ = {Pool("gpu", kG5AndP4d)};
  cluster_.AddPod("trainer", {{kGpu, 1}, {"cpu", 4000}, {"memory", 32'000'000'000}});
  EXPECT_EQ(Added(), "1 g5.2xlarge (on-demand, 1.212 USD/h)");
  EXPECT_EQ(plan_.nodes[0].pods[0].name, "trainer");
  EXPECT_EQ(plan_.units[0].nodes, std::vector<size_t>{0});
}

TEST_F(ScaleUpTest, WhatFitsWantsNothing) {
  pools_ = {Pool("gpu", kG5AndP4d)};
  cluster_.AddNodes(1, {{"cpu", 8000}, {"memory", 32 * kGiB}, {kGpu, 1}});
  cluster_.AddPod("a", {{kGpu, 1}});
  cluster_.AddPod("b", {{kGpu, 1}});
  EXPECT_EQ(Added(), "1 g5.xlarge (on-demand, 1.006 USD/h)");
  EXPECT_NE(plan_.units[0].fits, plan_.units[1].fits);
}

// Spot is cheaper, where pool and pod allow it; a pool that says nothing is on demand.
TEST_F(ScaleUpTest, SpotIsTakenWhereItIsAllowed) {
  pools_ = {Pool("gpu", kAnyCapacity)};
  cluster_.AddPod("a", {{kGpu, 8}, {"memory", 900 * kGiB}});
  EXPECT_EQ(Added(), "1 p4d.24xlarge (spot, 8.19 USD/h)");
  cluster::PodInfo pod = cluster_.MakePod("a", {{kGpu, 8}, {"memory", 900 * kGiB}});
  pod.constraints.affinity.selector = {{"karpenter.sh/capacity-type", "on-demand"}};
  cluster_.Remove("a");
  cluster_.AddPod(pod);
  EXPECT_EQ(Added(), "1 p4d.24xlarge (on-demand, 21.957642 USD/h)");
}

TEST_F(ScaleUpTest, AGangGetsAllOfItsNodesOrNone) {
  pools_ = {Pool("gpu", kG5AndP4d, ", limits: {nvidia.com/gpu: 24}")};
  cluster_.AddGang("train", 3, 3, {{kGpu, 8}, {"memory", 900 * kGiB}});
  EXPECT_EQ(Added(), "3 p4d.24xlarge (on-demand, 21.957642 USD/h)");
  used_ = {{{kGpu, 8}}};
  EXPECT_EQ(Added(), "");
  EXPECT_EQ(WhyNot("train"),
            "NodePool gpu: no number of its nodes within its limits takes all pods that have to "
            "start together");
}

// A part of the gang's places is there already.
TEST_F(ScaleUpTest, AGangUsesWhatIsFree) {
  pools_ = {Pool("gpu", kG5AndP4d)};
  cluster_.AddNodes(2, {{"cpu", 96'000}, {"memory", 1000 * kGiB}, {kGpu, 8}});
  cluster_.AddGang("train", 3, 3, {{kGpu, 8}, {"memory", 900 * kGiB}});
  EXPECT_EQ(Added(), "1 p4d.24xlarge (on-demand, 21.957642 USD/h)");
}

TEST_F(ScaleUpTest, PodsAreAlsoPutTogetherOnLargerMachines) {
  pools_ = {Pool("cpu", kCpuOnly)};
  for (int i = 0; i < 100; ++i)
    cluster_.AddPod("p" + std::to_string(i), {{"cpu", 500}, {"memory", 500 << 20}});
  const ScaleUp& plan = Plan();
  cluster::MicroUsd sum = 0;
  for (const NewNode& node : plan.nodes) sum += offerings_[node.offering].price;
  // 50 cores: at 0.0425 USD for a core, and no core is whole, less than an eighth above it.
  EXPECT_GE(sum, 2'125'000);
  EXPECT_LE(sum, 2'390'000) << Added();
  EXPECT_LE(plan.nodes.size(), 10u);
  // The last node is no larger than what is left for it.
  cluster_.Remove("p0");
  EXPECT_LE(sum, 2'390'000);
}

TEST_F(ScaleUpTest, ASecondPlanWithTheFirstOnesNodesWantsNothing) {
  pools_ = {Pool("gpu", kG5AndP4d)};
  for (int i = 0; i < 3; ++i) cluster_.AddPod("p" + std::to_string(i), {{kGpu, 1}});
  EXPECT_EQ(Added(), "3 g5.xlarge (on-demand, 1.006 USD/h)");
  int number = 0;
  for (const NewNode& node : plan_.nodes) {
    cluster::NodeInfo coming = *offerings_[node.offering].node;
    coming.name = coming.uid = coming.hostname = "coming-" + std::to_string(number++);
    cluster_.cache.UpsertNode(coming);
  }
  EXPECT_EQ(Added(), "");
}

// Complaint 3 (cluster-autoscaler #929): no GPU node is there to look at.
TEST_F(ScaleUpTest, FromNoNodeAtAllAGpuIsFoundInTheCatalogue) {
  pools_ = {Pool("gpu", kG5AndP4d)};
  EXPECT_EQ(Added(), "");
  cluster_.AddPod("a", {{"muster.dev/gpu-milli", 250}});
  EXPECT_EQ(Added(), "1 g5.xlarge (on-demand, 1.006 USD/h)");
}

// Complaint 6 (karpenter #715, #1749): what DaemonSets take of a node is not there for pods, and
// only of those that go there.
TEST_F(ScaleUpTest, DaemonSetsHaveTheirPartOfEveryNode) {
  pools_ = {Pool("gpu", kG5AndP4d)};
  cluster_.AddPod("a", {{kGpu, 1}, {"cpu", 3500}});
  EXPECT_EQ(Added(), "1 g5.xlarge (on-demand, 1.006 USD/h)");
  daemons_ = {
      ToDaemon(Yaml("{spec: {template: {spec: {nodeSelector: {elsewhere: 'yes'}, containers: "
                    "[{resources: {requests: {cpu: 1}}}]}}}}"))};
  EXPECT_EQ(Added(), "1 g5.xlarge (on-demand, 1.006 USD/h)");
  daemons_ = {ToDaemon(
      Yaml("{spec: {template: {spec: {containers: [{resources: {requests: {cpu: 1}}}]}}}}"))};
  EXPECT_EQ(Added(), "1 g5.2xlarge (on-demand, 1.212 USD/h)");
}

// ... and a pod of a DaemonSet never brings a node.
TEST_F(ScaleUpTest, PodsOfDaemonSetsBringNoNodes) {
  pools_ = {Pool("gpu", kG5AndP4d)};
  cluster::PodInfo pod = cluster_.MakePod("d", {{kGpu, 1}});
  pod.holder = "daemonset default/d";
  cluster_.AddPod(pod);
  EXPECT_EQ(Added(), "");
}

TEST_F(ScaleUpTest, TaintsOfThePoolKeepPodsAway) {
  pools_ = {Pool("gpu", kG5AndP4d, "",
                 ", taints: [{key: nvidia.com/gpu, value: 'true', effect: NoSchedule}]")};
  cluster_.AddPod("a", {{kGpu, 1}});
  EXPECT_EQ(Added(), "");
  EXPECT_EQ(WhyNot("a"), "NodePool gpu: its node(s) had untolerated taint {nvidia.com/gpu: true}");
  cluster_.Remove("a");
  cluster::PodInfo pod = cluster_.MakePod("a", {{kGpu, 1}});
  pod.constraints.tolerations = {{"nvidia.com/gpu", "", true, true, {}}};
  cluster_.AddPod(pod);
  EXPECT_EQ(Added(), "1 g5.xlarge (on-demand, 1.006 USD/h)");
}

TEST_F(ScaleUpTest, SaysWhatKeepsItFromAddingNodes) {
  EXPECT_EQ(Added(), "");
  cluster_.AddPod("a", {{kGpu, 16}});
  Plan();
  EXPECT_EQ(WhyNot("a"), "there is no NodePool");
  pools_ = {Pool("gpu", kG5AndP4d)};
  Plan();
  EXPECT_EQ(WhyNot("a"),
            "NodePool gpu: the pod wants 16 nvidia.com/gpu, and its largest type has 8");
  pools_ = {Pool("none", "[{key: node.kubernetes.io/instance-type, operator: In, values: [x]}]")};
  Plan();
  EXPECT_EQ(WhyNot("a"), "NodePool none: its requirements allow no instance type");
  cluster_.Remove("a");
  cluster_.AddPod("b", {{kGpu, 1}});
  pools_ = {Pool("gpu", kG5AndP4d, ", limits: {nvidia.com/gpu: 8}")};
  used_ = {{{kGpu, 8}}};
  Plan();
  EXPECT_EQ(WhyNot("b"), "NodePool gpu: its limit of 8 nvidia.com/gpu is reached (8 there)");
}

TEST_F(ScaleUpTest, LimitsLetInAsManyPodsOnTheirOwnAsTheyCan) {
  pools_ = {Pool("gpu", kG5AndP4d, ", limits: {nodes: 2}")};
  for (int i = 0; i < 3; ++i)
    cluster_.AddPod("p" + std::to_string(i), {{kGpu, 8}, {"memory", 900 * kGiB}});
  EXPECT_EQ(Added(), "2 p4d.24xlarge (on-demand, 21.957642 USD/h)");
  EXPECT_EQ(WhyNot("p2"), "NodePool gpu: its limit of 2 nodes is reached (2 there)");
}

// Complaint 9 (aws #5789): which pool goes first is the user's to say.
TEST_F(ScaleUpTest, PoolsOfAHigherWeightGoFirstAlsoAtAHigherPrice) {
  pools_ = {Pool("cheap", kAnyCapacity),
            Pool("first", kG5AndP4d, ", weight: 10, limits: {nodes: 1}")};
  cluster_.AddPod("a", {{kGpu, 1}});
  EXPECT_EQ(Added(), "1 g5.xlarge (on-demand, 1.006 USD/h)");
  EXPECT_EQ(pools_[offerings_[plan_.nodes[0].offering].pool].name, "first");
  used_ = {{}, {{"nodes", 1}}};
  EXPECT_EQ(Added(), "1 g5.xlarge (spot, 0.7042 USD/h)");
}

// Anti-affinity by host: one machine for each, though one would have the GPUs.
TEST_F(ScaleUpTest, RulesAboutOtherPodsHoldForNodesToCome) {
  pools_ = {Pool("gpu", kG5AndP4d)};
  for (int i = 0; i < 2; ++i) {
    const std::string name = "r" + std::to_string(i);
    json::Value pod = Yaml("{metadata: {namespace: default, name: " + name + ", uid: " + name +
                           ", labels: {app: x}}, spec: {affinity: {podAntiAffinity: "
                           "{requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: "
                           "{matchLabels: {app: x}}, "
                           "topologyKey: kubernetes.io/hostname}]}}, containers: [{resources: "
                           "{requests: {cpu: 1}}}]}}");
    cluster_.AddPod(cluster::ToPodInfo(pod));
  }
  EXPECT_EQ(Added(), "2 g5.xlarge (on-demand, 1.006 USD/h)");
}

TEST_F(ScaleUpTest, BeyondItsWorkItPromisesNothing) {
  pools_ = {Pool("gpu", kG5AndP4d)};
  cluster_.AddPod("a", {{kGpu, 1}});
  config_.max_work = 0;
  EXPECT_EQ(Added(), "");
  EXPECT_EQ(WhyNot("a"), "");
}

TEST(NodePool, BudgetsAreTheLeastOfThoseThatCount) {
  const NodePool pool = Pool("p", "[]",
                             ", disruption: {consolidateAfter: 2m, budgets: [{nodes: 20%}, {nodes: "
                             "'1', reasons: [Underutilized]}]}");
  EXPECT_EQ(MayGo(pool, "Empty", 10), 2);
  EXPECT_EQ(MayGo(pool, "Empty", 11), 3);
  EXPECT_EQ(MayGo(pool, "Underutilized", 10), 1);
  EXPECT_EQ(pool.consolidate_after, minutes(2));
  EXPECT_EQ(MayGo(Pool("q", "[]"), "Empty", 5), 1);
  EXPECT_EQ(Pool("q", "[]", ", disruption: {consolidateAfter: Never}").consolidate_after,
            std::nullopt);
}

TEST(Offerings, KeepBackWhatANodeNeedsForItself) {
  const cluster::InstanceType& type = *cluster::FindBuiltInInstanceType("g5.2xlarge");
  const cluster::ResourceList free = cluster::ToResourceList(AllocatableOf(type));
  EXPECT_EQ(cluster::AmountOf(free, "cpu"), 7910);
  EXPECT_EQ(cluster::AmountOf(free, "memory"), 32 * kGiB - (int64_t{1565} << 20));
  EXPECT_EQ(cluster::AmountOf(free, kGpu), 1);
}

TEST(Catalog, AFileAddsAndReplaces) {
  const auto catalog = ReadCatalog(R"(
types:
- {name: lab.h100, cpu: 96, memory: 1Ti, gpus: 8, gpuProduct: NVIDIA-H100-80GB-HBM3, price: "40.5"}
- {name: g5.xlarge, cpu: 4, memory: 16Gi, gpus: 1, gpuProduct: NVIDIA-A10G, spotPrice: 0.2}
)");
  ASSERT_TRUE(catalog.has_value()) << catalog.error().message();
  const auto find = [&](const std::string& name) {
    return *std::find_if(catalog->begin(), catalog->end(),
                         [&](const auto& type) { return type.name == name; });
  };
  EXPECT_EQ(find("lab.h100").on_demand, 40'500'000);
  EXPECT_EQ(find("lab.h100").spot, 0);
  EXPECT_EQ(find("g5.xlarge").spot, 200'000);
  EXPECT_EQ(catalog->size(), cluster::BuiltInInstanceTypes().size() + 1);
  EXPECT_EQ(ReadCatalog("")->size(), cluster::BuiltInInstanceTypes().size());
}

TEST(Catalog, SaysWhatIsWrong) {
  const auto fault = [](const std::string& entry) {
    const auto catalog = ReadCatalog("types: [" + entry + "]");
    return catalog ? "" : catalog.error().message();
  };
  EXPECT_TRUE(fault("{cpu: 1}").contains("needs a name"));
  EXPECT_TRUE(fault("{name: x, memory: 1Gi}").contains("\"x\": cpu:"));
  EXPECT_TRUE(fault("{name: x, cpu: 1, memory: 1Gi, cost: 2}").contains("no field \"cost\""));
  EXPECT_TRUE(
      fault("{name: x, cpu: 1, memory: 1Gi, price: free}").contains("price: expected dollars"));
  EXPECT_TRUE(fault("{name: x, cpu: 1, memory: 1Gi}").contains("offered in no way"));
  EXPECT_TRUE(fault("{name: x, cpu: 1, memory: 1Gi, gpus: 1, price: 1}").contains("gpuProduct"));
  EXPECT_TRUE(fault("{name: x, cpu: 1, memory: 1Gi, gpus: 500, price: 1}").contains("0 to 128"));
  EXPECT_TRUE(fault("{name: x, cpu: 1, memory: 1Gi, price: 1}, {name: x, cpu: 1, memory: 1Gi, "
                    "price: 1}")
                  .contains("twice"));
  EXPECT_FALSE(ReadCatalog("kinds: []").has_value());
}

}  // namespace
}  // namespace muster::autoscaler
