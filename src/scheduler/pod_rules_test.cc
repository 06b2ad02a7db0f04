// Rules that look at other pods, in whole plans. That each rule decides right node by node is
// feasibility_oracle_test.cc.

#include "scheduler/pod_rules.h"

#include <gtest/gtest.h>

#include "scheduler/test_cluster.h"

namespace muster::scheduler {
namespace {

const cluster::ResourceList kNode = {{"cpu", 8000}};
constexpr const char* kHostname = "kubernetes.io/hostname";

cluster::PodTerm TermOf(const std::string& app, const std::string& key) {
  cluster::PodTerm term;
  term.pods.namespaces = {"default"};
  term.pods.labels = schema::LabelSelector({{"app", schema::LabelOperator::kIn, {app}}});
  term.topology_key = key;
  return term;
}

class PodRulesTest : public testing::Test {
 protected:
  void AddNodes(int count, int zones) {
    for (int i = 0; i < count; ++i) {
      cluster::NodeInfo node = c_.MakeNode("n" + std::to_string(i), kNode);
      node.labels["zone"] = std::to_string(i % zones);
      c_.cache.UpsertNode(node);
    }
  }
  cluster::PodInfo Pod(const std::string& name, const std::string& app, int64_t cpu = 1000) {
    cluster::PodInfo pod = c_.MakePod(name, {{"cpu", cpu}});
    pod.labels = {{"app", app}};
    return pod;
  }
  void AddToGang(const std::string& gang, cluster::PodInfo pod) {
    pod.group = gang;
    pod.holder = "pytorchjob default/" + gang;
    c_.AddPod(std::move(pod));
  }
  std::string Zone(const std::string& pod) {
    const cluster::ClusterSnapshot& snapshot = c_.cache.snapshot();
    return snapshot.Node(c_.cache.FindNode(c_.NodeOf(pod))).labels.at("zone");
  }
  TestCluster c_;
};

TEST_F(PodRulesTest, PodsOfOnePlanDoNotShareAHostPort) {
  AddNodes(2, 1);
  for (const char* name : {"a", "b", "c"}) {
    cluster::PodInfo pod = Pod(name, "web");
    pod.constraints.relations.ports = {{"0.0.0.0", "TCP", 80}};
    c_.AddPod(pod);
  }
  EXPECT_EQ(c_.Plan(), 2u);
  EXPECT_NE(c_.NodeOf("a"), c_.NodeOf("b"));
  EXPECT_EQ(NodesAvailableText(c_.WhyNot("c")),
            "0/2 nodes are available: 2 node(s) didn't have free ports for the requested pod "
            "ports.");
  c_.Remove("a");
  EXPECT_EQ(c_.Plan(), 1u);
}

TEST_F(PodRulesTest, AGroupThatWantsToBeTogetherStartsAnywhereAndStaysThere) {
  AddNodes(6, 3);
  for (int i = 0; i < 16; ++i) {
    cluster::PodInfo pod = Pod("p" + std::to_string(i), "web");
    pod.constraints.relations.affinity = {TermOf("web", "zone")};
    c_.AddPod(pod);
  }
  EXPECT_EQ(c_.Plan(), 16u);
  for (int i = 1; i < 16; ++i) EXPECT_EQ(Zone("p" + std::to_string(i)), Zone("p0"));
  cluster::PodInfo full = Pod("more", "web");
  full.constraints.relations.affinity = {TermOf("web", "zone")};
  c_.AddPod(full);
  EXPECT_EQ(c_.Plan(), 0u);
  EXPECT_EQ(NodesAvailableText(c_.WhyNot("more")),
            "0/6 nodes are available: 2 Insufficient cpu, 4 node(s) didn't match pod affinity "
            "rules.");
}

TEST_F(PodRulesTest, APodFindsTheOneThatComesAfterIt) {
  AddNodes(4, 2);
  cluster::PodInfo first = Pod("first", "web");
  first.constraints.relations.affinity = {TermOf("db", kHostname)};
  c_.AddPod(first);
  c_.AddPod(Pod("second", "db"));
  EXPECT_EQ(c_.Plan(), 2u);
  EXPECT_EQ(c_.NodeOf("first"), c_.NodeOf("second"));
}

TEST_F(PodRulesTest, SoDoPodsOfOneGang) {
  AddNodes(4, 2);
  c_.AddGang("g", 3, 0, {});
  for (const char* name : {"g-0", "g-1"}) {
    cluster::PodInfo pod = Pod(name, "web");
    pod.constraints.relations.affinity = {TermOf("db", kHostname)};
    AddToGang("g", pod);
  }
  AddToGang("g", Pod("g-2", "db"));
  EXPECT_EQ(c_.Plan(), 3u);
  EXPECT_EQ(c_.NodeOf("g-0"), c_.NodeOf("g-2"));
  EXPECT_EQ(c_.NodeOf("g-1"), c_.NodeOf("g-2"));
}

TEST_F(PodRulesTest, AGangThatDoesNotFitLeavesNoTrace) {
  AddNodes(2, 1);
  c_.AddGang("g", 3, 0, {});
  for (const char* name : {"g-0", "g-1", "g-2"}) {
    cluster::PodInfo pod = Pod(name, "web");
    pod.constraints.relations.anti_affinity = {TermOf("web", kHostname)};
    AddToGang("g", pod);
  }
  // Behind the gang in the queue, and one that its members would not have beside them.
  c_.AddPod(Pod("plain", "web", 8000));
  EXPECT_EQ(c_.Plan(), 1u);
  EXPECT_EQ(NodesAvailableText(c_.WhyNot("g")),
            "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match pod anti-affinity "
            "rules.");
}

TEST_F(PodRulesTest, PodsThatWantToBeAloneKeepOthersAway) {
  AddNodes(1, 1);
  cluster::PodInfo alone = Pod("alone", "db");
  alone.constraints.relations.anti_affinity = {TermOf("web", kHostname)};
  c_.AddPod(alone);
  c_.AddPod(Pod("web", "web"));
  c_.AddPod(Pod("db", "db"));
  EXPECT_EQ(c_.Plan(), 2u);
  EXPECT_EQ(NodesAvailableText(c_.WhyNot("web")),
            "0/1 nodes are available: 1 node(s) didn't satisfy existing pods anti-affinity rules.");
  EXPECT_EQ(c_.WhyNot("web").why, Infeasible::Why::kNoFit);
  c_.Remove("alone");
  EXPECT_EQ(c_.Plan(), 1u);
}

TEST_F(PodRulesTest, SpreadsOverZonesHoweverFullTheyAre) {
  AddNodes(9, 3);
  for (int i = 0; i < 30; ++i) {
    cluster::PodInfo pod = Pod("p" + std::to_string(i), "web");
    pod.constraints.relations.spread = {{TermOf("web", "zone"), 1}};
    c_.AddPod(pod);
  }
  EXPECT_EQ(c_.Plan(), 30u);
  std::map<std::string, int> pods;
  for (int i = 0; i < 30; ++i) ++pods[Zone("p" + std::to_string(i))];
  EXPECT_EQ(pods, (std::map<std::string, int>{{"0", 10}, {"1", 10}, {"2", 10}}));
}

TEST_F(PodRulesTest, AGangWithoutTheNeighboursThatItWantsIsNotCalledTooLarge) {
  AddNodes(2, 1);
  c_.AddGang("g", 2, 0, {});
  for (const char* name : {"g-0", "g-1"}) {
    cluster::PodInfo pod = Pod(name, "web");
    pod.constraints.relations.affinity = {TermOf("db", "zone")};
    AddToGang("g", pod);
  }
  EXPECT_EQ(c_.Plan(), 0u);
  EXPECT_EQ(c_.WhyNot("g").why, Infeasible::Why::kNoFit);
  EXPECT_EQ(NodesAvailableText(c_.WhyNot("g")),
            "0/2 nodes are available: 2 node(s) didn't match pod affinity rules.");
}

}  // namespace
}  // namespace muster::scheduler
