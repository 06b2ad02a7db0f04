// What people, tools and clocks do to gangs: told clearly, and nobody else suffers.

#include <string>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "scheduler/scheduler_test_base.h"
#include "scheduler/test_cluster.h"

namespace muster::scheduler {
namespace {

const cluster::ResourceList kOneGpu = {{"nvidia.com/gpu", 1}};
const cluster::ResourceList kFourGpus = {{"nvidia.com/gpu", 4}};

// Everything that waits says why, and a pod beside it runs.
std::string PlanBeside(TestCluster& c, const std::string& gang) {
  c.AddPod("beside", kOneGpu);
  c.Plan();
  EXPECT_EQ(c.NodeOf("beside"), "n0");
  return c.Message(gang);
}

TEST(BadInput, MinMemberAboveTheReplicas) {
  for (const int64_t min_member : {int64_t{3}, int64_t{2147483647}}) {
    TestCluster c;
    c.AddNodes(1, kFourGpus);
    c.AddGang("g", min_member, 2, kOneGpu);
    EXPECT_EQ(PlanBeside(c, "g"),
              fmt::format("2/{} pods of the gang exist: gang g waits for {} more.", min_member,
                          min_member - 2));
  }
}

TEST(BadInput, NoMinimumIsAMinimumOfOne) {
  TestCluster c;
  c.AddNodes(1, kFourGpus);
  c.AddGang("g", 0, 6, kOneGpu);
  EXPECT_EQ(c.Plan(), 4u);
  EXPECT_EQ(c.WhyNot("g").started_with, 4);
}

TEST(BadInput, ATaskThatNobodyNames) {
  TestCluster c;
  c.AddNodes(1, kFourGpus);
  c.AddGang("g", 2, 2, kOneGpu);
  c.ChangeGroup("g", [](cluster::PodGroupInfo& group) { group.min_task_member = {{"nobody", 1}}; });
  EXPECT_EQ(PlanBeside(c, "g"),
            "0/1 pods of task nobody exist: gang g waits for 1 more. No pod of it has the "
            "annotation volcano.sh/task-spec: nobody.");
}

TEST(BadInput, AbsurdMinResources) {
  TestCluster c;
  c.AddNodes(1, kFourGpus);
  c.AddGang("g", 1, 1, kOneGpu);
  c.ChangeGroup("g", [](cluster::PodGroupInfo& group) {
    group.min_resources =
        cluster::ToResourceList(json::Obj({{"memory", "9E"}, {"nvidia.com/gpu", "1e40"}}));
  });
  EXPECT_EQ(
      PlanBeside(c, "g"),
      "gang g: its minResources want 1Pi memory, the cluster offers 0; it is not tried before "
      "there are more nodes.");
}

TEST(BadInput, AffinityThatContradictsItself) {
  TestCluster c;
  c.AddNodes(1, kFourGpus);
  const auto contradict = [&](const std::string& name, const std::string& gang) {
    cluster::PodInfo pod = c.MakePod(name, kOneGpu);
    pod.group = gang;
    pod.constraints.affinity = cluster::ToNodeAffinity(json::ParseYaml(R"(
      {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms:
      [{matchExpressions: [{key: a, operator: In, values: [b]},
                           {key: a, operator: NotIn, values: [b]}]}]}}}})")
                                                           .value()[0]);
    c.AddPod(pod);
  };
  contradict("alone", "");
  c.AddGang("g", 2, 0, {});
  for (const char* pod : {"g-0", "g-1"}) contradict(pod, "g");
  const std::string cause = "1 node(s) didn't match Pod's node affinity/selector";
  EXPECT_NE(PlanBeside(c, "g").find(cause), std::string::npos) << c.Message("g");
  EXPECT_NE(c.Message("alone").find(cause), std::string::npos) << c.Message("alone");
  EXPECT_EQ(c.WhyNot("g").why, Infeasible::Why::kNeverFits);
  EXPECT_EQ(c.WhyNot("alone").why, Infeasible::Why::kNeverFits);
}

// Looked at once per kind of node: every pod on every node, term by term, would be four thousand
// million comparisons of texts.
TEST(BadInput, AThousandTermsAreLookedAtOncePerKindOfNode) {
  constexpr int kTerms = 1'000, kNodes = 1'000, kPods = 200;
  TestCluster c;
  c.config.explain = true;
  for (int i = 0; i < kNodes; ++i) {
    cluster::NodeInfo node = c.MakeNode(fmt::format("n{}", i), kOneGpu);
    node.labels["zone"] = "last";
    c.cache.UpsertNode(node);
  }
  json::Array terms;
  for (int i = 0; i < kTerms; ++i) {
    json::Array values;
    for (int j = 0; j < 20; ++j) values.push_back(fmt::format("zone-{}-{}", i, j));
    if (i + 1 == kTerms) values.push_back("last");
    terms.push_back(json::Obj(
        {{"matchExpressions",
          json::List({json::Obj({{"key", "zone"}, {"operator", "In"}, {"values", values}})})}}));
  }
  const json::Value affinity =
      json::Obj({}).SetPath({"affinity", "nodeAffinity",
                             "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"},
                            json::Value(terms));
  cluster::PodInfo pod = c.MakePod("p", kOneGpu);
  pod.constraints.affinity = cluster::ToNodeAffinity(affinity);
  ASSERT_EQ(pod.constraints.affinity.terms.size(), static_cast<size_t>(kTerms));
  for (int i = 0; i < kPods; ++i) {
    pod.name = fmt::format("p{}", i);
    pod.uid = "uid-" + pod.name;
    c.AddPod(pod);
  }
  EXPECT_EQ(c.Plan(), static_cast<size_t>(kPods));
}

TEST(BadInput, AGatedMemberIsNamedAsTheCause) {
  TestCluster c;
  c.AddNodes(1, kFourGpus);
  c.AddGang("g", 2, 1, kOneGpu);
  cluster::PodInfo gated = c.MakePod("g-gated", kOneGpu);
  gated.group = "g";
  gated.gated = true;
  c.cache.UpsertPod(gated);
  EXPECT_EQ(
      PlanBeside(c, "g"),
      "1/2 pods of the gang can be scheduled, 1 of the gang are held back by scheduling gates "
      "or left to another scheduler: gang g waits for 1 more.");
}

// -- On the whole scheduler.

TEST_F(SchedulerTest, AGangThatWaitsHoldsNothingWhateverTheClockDoes) {
  AddNode("n1", 2);
  AddPod("before", 1);
  Settle();
  api_.Put(kPluginsGroups, json::ParseYaml("{metadata: {namespace: default, name: g}, spec: "
                                           "{minMember: 2, scheduleTimeoutSeconds: 1}}")
                               .value()[0]);
  for (const char* pod : {"g-0", "g-1"}) api_.Put(kPods, MakePod(pod, 1, "g"));
  Settle();
  for (const Duration jump : {Duration(hours(24)), Duration(-hours(48))}) {
    loop_.JumpClock(jump);
    Settle();
    EXPECT_EQ(BoundOf("g", 2), 0);
  }
  AddPod("other", 1);  // what the gang waits for is free to others
  Settle();
  EXPECT_EQ(NodeOf("other"), "n1");
  SetPhase("other", "Succeeded");
  SetPhase("before", "Succeeded");
  Settle();
  EXPECT_EQ(BoundOf("g", 2), 2);
}

TEST_F(SchedulerTest, AGangThatLosesATaskDuringThePlanIsNotBound) {
  AddNode("n1", 4);
  api_.Put(kGroups,
           json::ParseYaml("{metadata: {namespace: default, name: g}, spec: {minMember: 2, "
                           "minTaskMember: {ps: 1}}}")
               .value()[0]);
  Settle();
  pool_.hold = true;
  const auto put = [&](const std::string& name, const std::string& task) {
    api_.Put(
        kPods,
        MakePod(name, 1, "g").SetPath({"metadata", "annotations", "volcano.sh/task-spec"}, task));
  };
  put("g-0", "worker");
  put("g-1", "worker");
  put("g-2", "ps");
  loop_.RunFor(milliseconds(50));
  api_.Remove(kPods, "default", "g-2");
  loop_.RunFor(milliseconds(50));
  pool_.Release();
  Settle();
  EXPECT_EQ(BoundOf("g", 2), 0);
  put("g-2", "ps");
  Settle();
  EXPECT_EQ(BoundOf("g", 3), 3);
}

}  // namespace
}  // namespace muster::scheduler
