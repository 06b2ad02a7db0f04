#include "scheduler/explain.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/parse.h"
#include "json/write.h"
#include "scheduler/more_nodes.h"
#include "scheduler/test_cluster.h"

namespace muster::scheduler {
namespace {

const cluster::ResourceList kOneGpu = {{"nvidia.com/gpu", 1}};

TEST(Explain, SortsReasonsAsKubeSchedulerDoes) {
  TestCluster c;
  for (int i = 0; i < 5; ++i) {
    cluster::NodeInfo node = c.MakeNode("n" + std::to_string(i), {{"cpu", 4000}});
    if (i < 2) node.taints = {{"k", "v", cluster::TaintEffect::kNoSchedule}};
    c.cache.UpsertNode(node);
  }
  c.AddPod("p", kOneGpu);
  c.Plan();
  EXPECT_EQ(NodesAvailableText(c.WhyNot("p")),
            "0/5 nodes are available: 2 node(s) had untolerated taint {k: v}, 3 Insufficient "
            "nvidia.com/gpu.");
}

TEST(Explain, AGangReadsWhoHoldsWhatItNeeds) {
  TestCluster c;
  c.AddNodes(1, {{"nvidia.com/gpu", 4}});
  c.AddGang("a", 3, 3, kOneGpu);
  c.Plan();
  c.AddGang("b", 4, 4, kOneGpu);
  c.Plan();
  EXPECT_EQ(c.Message("b"),
            "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. gang b: 4 pods x 1 "
            "nvidia.com/gpu need 4 at once, 1 "
            "of 4 free (3 held by pytorchjob default/a); fits when pytorchjob default/a ends.");
  c.AddPod("c", kOneGpu);
  c.Plan();
  EXPECT_EQ(c.Message("b"),
            "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. gang b: 4 pods x 1 "
            "nvidia.com/gpu need 4 at once, 0 "
            "of 4 free (3 held by pytorchjob default/a, 1 held by pod default/c); fits when "
            "pytorchjob default/a and pod "
            "default/c end.");
}

TEST(Explain, APodReadsWhoseEndLetsItRun) {
  TestCluster c;
  c.AddNodes(1, {{"nvidia.com/gpu", 4}});
  c.AddGang("a", 3, 3, kOneGpu);
  c.Plan();
  c.AddPod("p", {{"nvidia.com/gpu", 4}});
  c.Plan();
  EXPECT_EQ(c.Message("p"),
            "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. Waits for 4 nvidia.com/gpu: 1 "
            "of 4 free (3 held by "
            "pytorchjob default/a); fits when pytorchjob default/a ends.");
}

TEST(Explain, SaysWhenWhatIsFreeIsInTooSmallPieces) {
  TestCluster c;
  c.AddNodes(2, {{"nvidia.com/gpu", 4}});
  c.AddPod("x", {{"nvidia.com/gpu", 3}});
  c.AddPod("y", {{"nvidia.com/gpu", 3}});
  c.Plan();
  c.AddPod("p", {{"nvidia.com/gpu", 2}});
  c.Plan();
  EXPECT_EQ(c.Message("p"),
            "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. Waits for 2 nvidia.com/gpu: 2 "
            "of 8 free (3 held by "
            "pod default/x, 3 held by pod default/y), at most 1 on one node; fits when pod "
            "default/y ends.");
  c.Remove("p");
  c.AddGang("g", 2, 2, {{"nvidia.com/gpu", 1}, {"cpu", 0}});
  EXPECT_EQ(c.Plan(), 2u);
}

TEST(Explain, SaysWhenNothingThatEndsWouldHelp) {
  TestCluster c;
  c.AddNodes(2, {{"cpu", 4000}});
  c.AddPod("p", {{"cpu", 6000}});
  c.Plan();
  EXPECT_EQ(c.Message("p"),
            "0/2 nodes are available: 2 Insufficient cpu. It does not fit even an empty cluster: "
            "no node that passes its "
            "rules offers 6 cpu; it needs a node with 6 free cpu.");
}

TEST(Explain, SaysWhenNoNodePassesTheRules) {
  TestCluster c;
  c.AddNodes(2, {{"cpu", 4000}});
  cluster::PodInfo pod = c.MakePod("p", {{"cpu", 1000}});
  pod.constraints.affinity.selector = {{"zone", "nowhere"}};
  c.AddPod(pod);
  c.Plan();
  EXPECT_EQ(c.Message("p"),
            "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector. It does "
            "not fit even an empty "
            "cluster: no node has zone In [nowhere].");
}

TEST(Explain, WritesBytesAndCoresAsQuantities) {
  TestCluster c;
  c.AddNodes(1, {{"cpu", 4000}, {"memory", int64_t{8} << 30}});
  c.AddPod("x", {{"memory", int64_t{6} << 30}});
  c.Plan();
  c.AddPod("p", {{"memory", int64_t{4} << 30}});
  c.Plan();
  EXPECT_EQ(c.Message("p"),
            "0/1 nodes are available: 1 Insufficient memory. Waits for 4Gi memory: 2Gi of 8Gi free "
            "(6Gi held by pod "
            "default/x); fits when pod default/x ends.");
}

TEST(Explain, NamesFewHoldersAndCountsTheRest) {
  TestCluster c;
  c.AddNodes(1, {{"nvidia.com/gpu", 8}});
  for (int i = 0; i < 8; ++i) c.AddPod("x" + std::to_string(i), kOneGpu);
  c.Plan();
  c.AddPod("p", kOneGpu);
  c.Plan();
  EXPECT_NE(c.Message("p").find(", the rest by 3 others)"), std::string::npos) << c.Message("p");
  EXPECT_EQ(c.WhyNot("p").holders.size(), 8u);
}

TEST(Explain, APartlyPlacedGangSaysWhatTheRestWaitsFor) {
  TestCluster c;
  c.AddNodes(1, {{"nvidia.com/gpu", 4}});
  c.AddGang("g", 2, 6, kOneGpu);
  EXPECT_EQ(c.Plan(), 4u);
  EXPECT_EQ(
      c.Message("g"),
      "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. gang g has started with 4 pods "
      "(at least 2); 2 more wait for 1 nvidia.com/gpu each: 0 of 4 free (4 held by pytorchjob "
      "default/g).");
}

TEST(Explain, IsReadableByPrograms) {
  TestCluster c;
  c.AddNodes(1, {{"nvidia.com/gpu", 4}});
  c.AddGang("a", 3, 3, kOneGpu);
  c.Plan();
  c.AddGang("b", 4, 4, kOneGpu);
  c.Plan();
  const json::Value facts = ToJson(c.WhyNot("b"));
  EXPECT_EQ(facts["why"].AsString(), "NoFit");
  EXPECT_EQ(facts["gang"]["podsNeeded"].AsInt(), 4);
  EXPECT_EQ(facts["gang"]["podsFitting"].AsInt(), 1);
  EXPECT_EQ(facts["resource"]["name"].AsString(), "nvidia.com/gpu");
  EXPECT_EQ(facts["resource"]["free"].AsString(), "1");
  EXPECT_EQ(facts["fitsWhenTheseEnd"].At(0)["holder"].AsString(), "pytorchjob default/a");
  EXPECT_EQ(facts["failedByRule"].At(0)["nodes"].AsInt(), 1);
  EXPECT_EQ(facts["message"].AsString(), c.Message("b"));
}

// 12 H100 machines, half of them tainted, 3 GPUs free on one; and two without GPUs, one cordoned.
void MakeMixedCluster(TestCluster& c) {
  for (int i = 0; i < 12; ++i) {
    cluster::NodeInfo node =
        c.MakeNode("gpu-" + std::to_string(i),
                   {{"cpu", 96000}, {"memory", int64_t{1} << 40}, {"nvidia.com/gpu", 8}});
    node.labels["nvidia.com/gpu.product"] = "H100";
    if (i >= 6) node.taints = {{"dedicated", "ml", cluster::TaintEffect::kNoSchedule}};
    c.cache.UpsertNode(node);
  }
  for (int i = 0; i < 2; ++i) {
    cluster::NodeInfo node =
        c.MakeNode("cpu-" + std::to_string(i), {{"cpu", 64000}, {"memory", int64_t{256} << 30}});
    node.unschedulable = i == 0;
    c.cache.UpsertNode(node);
  }
  for (int i = 0; i < 6; ++i)
    c.AddPod("x" + std::to_string(i), {{"nvidia.com/gpu", i == 0 ? 5 : 8}});
  EXPECT_EQ(c.Plan(), 6u);
  c.config.detail = true;
  c.AddPod("p", {{"cpu", 64000}, {"memory", int64_t{512} << 30}, {"nvidia.com/gpu", 4}});
  EXPECT_EQ(c.Plan(), 0u);
}

TEST(Explain, TheDetailGroupsNodesAndSaysWhatWouldHelp) {
  TestCluster c;
  MakeMixedCluster(c);
  EXPECT_EQ(
      Join(DetailLines(c.WhyNot("p")), "\n"),
      "12 x 8 GPU H100: 6 Insufficient nvidia.com/gpu, 3 free at most on one, 6 node(s) had "
      "untolerated taint {dedicated: ml}\n"
      "2 x 64 cpu 256Gi: 1 Insufficient memory, 1 Insufficient nvidia.com/gpu, 0 free at most on "
      "one, 1 node(s) were unschedulable\n"
      "6 nodes would take it but for one rule: Insufficient nvidia.com/gpu\n"
      "6 nodes would take it but for one rule: node(s) had untolerated taint {dedicated: ml}\n"
      "lacks 1 nvidia.com/gpu of H100\n"
      "fits with 1 more node like gpu-0 (8 GPU H100)\n"
      "fits when pod default/x0 ends");
  EXPECT_TRUE(DetailLines(Infeasible{}).empty());
}

// The documented fields (docs/explain.md): a change here is a change for programs.
TEST(Explain, JsonIsStable) {
  TestCluster c;
  MakeMixedCluster(c);
  const std::string golden = R"({"why":"NoFit",
"message":"",
"nodes":14,
"failedByRule":[
 {"reason":"Insufficient memory","nodes":1},
 {"reason":"node(s) were unschedulable","nodes":1},
 {"reason":"node(s) had untolerated taint {dedicated: ml}","nodes":6},
 {"reason":"Insufficient nvidia.com/gpu","nodes":7}],
"resource":{"name":"nvidia.com/gpu","wantedPerPod":"4","wanted":"4","free":"3","offered":"48",
 "mostFreeOnANode":"3","models":["H100"],"holders":6,
 "heldBy":[
  {"holder":"pod default/x1","amount":"8"},
  {"holder":"pod default/x2","amount":"8"},
  {"holder":"pod default/x3","amount":"8"},
  {"holder":"pod default/x4","amount":"8"},
  {"holder":"pod default/x5","amount":"8"},
  {"holder":"pod default/x0","amount":"5"}]},
"nodeKinds":[
 {"kind":"8 GPU H100","nodes":12,"names":["gpu-0","gpu-1","gpu-2","gpu-3","gpu-4"],
  "failedByRule":[
   {"reason":"Insufficient nvidia.com/gpu","nodes":6},
   {"reason":"node(s) had untolerated taint {dedicated: ml}","nodes":6}],
  "free":"3","mostFreeOnANode":"3"},
 {"kind":"64 cpu 256Gi","nodes":2,"names":["cpu-0","cpu-1"],
  "failedByRule":[
   {"reason":"Insufficient memory","nodes":1},
   {"reason":"Insufficient nvidia.com/gpu","nodes":1},
   {"reason":"node(s) were unschedulable","nodes":1}],
  "free":"0","mostFreeOnANode":"0"}],
"excludedByOneRule":[
 {"reason":"Insufficient nvidia.com/gpu","nodes":6},
 {"reason":"node(s) had untolerated taint {dedicated: ml}","nodes":6}],
"fitsWithNodes":{"count":1,
 "offers":{"cpu":"96","memory":"1Ti","nvidia.com/gpu":"8","pods":"110"},
 "like":"gpu-0","kind":"8 GPU H100"},
"fitsWhenTheseEnd":[{"holder":"pod default/x0","amount":"5"}]})";
  EXPECT_EQ(json::Write(ToJson(c.WhyNot("p"))),
            json::Write(json::Parse(golden)->Set("message", c.Message("p"))));
}

TEST(Explain, SaysWhichNodesToAdd) {
  TestCluster c;
  c.AddNodes(2, {{"cpu", 8000}, {"nvidia.com/gpu", 4}});
  c.AddPod("labelled", {{"cpu", 4000}, {"nvidia.com/gpu", 8}});
  c.AddGang("wide", 3, 3, {{"nvidia.com/gpu", 8}});
  c.AddGang("many", 5, 5, {{"cpu", 8000}});
  c.Plan();
  EXPECT_EQ(c.WhyNot("labelled").more_nodes,
            (MoreNodes{1, "", "", {{"cpu", 4000}, {"nvidia.com/gpu", 8}, {"pods", 1}}, {}}));
  EXPECT_EQ(c.WhyNot("wide").more_nodes->count, 3);
  EXPECT_NE(c.Message("wide").find("it needs 16 more nvidia.com/gpu, as of 3 more nodes, each with "
                                   "8 free nvidia.com/gpu."),
            std::string::npos)
      << c.Message("wide");
  EXPECT_NE(c.Message("many").find("it needs 24 more cpu, as of 3 more nodes like n0 (4 GPU "
                                   "Simulated)."),
            std::string::npos)
      << c.Message("many");
}

TEST(Explain, NodesToAddHaveRoomForEachPodOfAGangOfDifferentOnes) {
  TestCluster c;
  c.AddNodes(1, {{"cpu", 2000}});
  c.AddGang("ray", 3, 2, {{"cpu", 4000}});
  c.AddGangPod("ray", "ray-gpu", {{"cpu", 3000}, {"nvidia.com/gpu", 1}});
  c.Plan();
  EXPECT_EQ(c.WhyNot("ray").more_nodes,
            (MoreNodes{3, "", "", {{"cpu", 4000}, {"nvidia.com/gpu", 1}, {"pods", 1}}, {}}));
}

TEST(Explain, NoNodesHelpAPodThatOthersKeepAway) {
  TestCluster c;
  c.config.detail = true;
  cluster::NodeInfo node = c.MakeNode("n0", {{"cpu", 8000}});
  node.labels["zone"] = "a";
  c.cache.UpsertNode(node);
  cluster::PodInfo pod = c.MakePod("a", {{"cpu", 1000}});
  pod.labels = {{"app", "x"}};
  cluster::PodTerm& term = pod.constraints.relations.anti_affinity.emplace_back();
  term.pods.namespaces = {"default"};
  term.topology_key = "zone";
  c.AddPod(pod);
  pod.name = pod.uid = "b";
  pod.holder = "pod default/b";
  c.AddPod(pod);
  EXPECT_EQ(c.Plan(), 1u);
  EXPECT_EQ(c.WhyNot("b").more_nodes, std::nullopt);
  EXPECT_EQ(c.WhyNot("b").unblocked_by, (std::vector<Holding>{{"pod default/a", 0}}));
}

TEST(Explain, APodThatWaitsForANeighbourSaysSo) {
  TestCluster c;
  c.AddNodes(2, {{"cpu", 8000}});
  cluster::PodInfo pod = c.MakePod("p", {{"cpu", 1000}});
  cluster::PodTerm& term = pod.constraints.relations.affinity.emplace_back();
  term.pods.namespaces = {"default"};
  term.pods.labels = schema::LabelSelector({{"app", schema::LabelOperator::kIn, {"x"}}});
  term.topology_key = std::string(cluster::kHostnameLabel);
  c.AddPod(pod);
  c.Plan();
  EXPECT_EQ(c.Message("p"),
            "0/2 nodes are available: 2 node(s) didn't match pod affinity rules. It waits for pods "
            "that its podAffinity wants near: none runs where it could.");
  EXPECT_TRUE(ToJson(c.WhyNot("p"))["wantsNeighbours"].AsBool());
}

TEST(Explain, AddsNoMoreNodesThanItsLimit) {
  for (const int64_t pods : {kMaxNodesAdded + 1, kMaxNodesAdded + 2}) {
    TestCluster c;
    c.AddNodes(1, {{"cpu", 1000}});
    c.AddGang("g", pods, static_cast<int>(pods), {{"cpu", 1000}});
    c.Plan();
    EXPECT_EQ(c.WhyNot("g").more_nodes.has_value(), pods == kMaxNodesAdded + 1);
  }
}

TEST(Explain, OneUnitOnly) {
  TestCluster c;
  c.AddPod("a", kOneGpu);
  c.AddPod("b", kOneGpu);
  c.config.explain_only = 1;
  c.Plan();
  EXPECT_FALSE(c.result.units[0].infeasible.has_value());
  EXPECT_TRUE(c.result.units[1].infeasible.has_value());
}

TEST(Explain, StopsSearchingWhenTheWorkIsUsedUp) {
  TestCluster c;
  c.config.max_unblock_work = 0;
  c.AddNodes(1, {{"nvidia.com/gpu", 4}});
  c.AddPod("x", {{"nvidia.com/gpu", 4}});
  c.Plan();
  c.AddPod("p", kOneGpu);
  c.Plan();
  EXPECT_TRUE(c.WhyNot("p").unblocked_by.empty());
  EXPECT_EQ(c.WhyNot("p").holders.size(), 1u);
}

}  // namespace
}  // namespace muster::scheduler
