// The whole way of nodes: asked for, joined, used, empty, gone; and the complaints of users of
// Karpenter and Cluster Autoscaler that are not the planner's alone (scale_up_planner_test.cc).

#include "autoscaler/autoscaler.h"

#include "autoscaler/autoscaler_test_base.h"

namespace muster::autoscaler {
namespace {

TEST_F(AutoscalerTest, APodThatWaitsGetsANodeThatGoesWhenItIsEmpty) {
  PutPool();
  Start();
  EXPECT_EQ(All(kClaimsPath).size(), 0u);
  PutPod("a");
  loop_.RunFor(seconds(3));
  const std::string name = OnlyClaim();
  EXPECT_EQ(Claim(name)["metadata"]["labels"]["node.kubernetes.io/instance-type"].AsString(),
            "g5.xlarge");
  EXPECT_EQ(ConditionOf(name, "Launched", "status"), "True");
  EXPECT_EQ(ConditionOf(name, "Registered", "status"), "False");
  EXPECT_EQ(Node(name), json::Value());
  EXPECT_EQ(
      Told("Nominated NodePool gpu adds g5.xlarge (on-demand, 1.006 USD/h): nodeclaim/" + name),
      1u);
  loop_.RunFor(seconds(9));
  ASSERT_NE(Node(name), json::Value());
  EXPECT_EQ(ConditionOf(name, "Ready", "status"), "True");
  EXPECT_EQ(Get(kPoolsPath, "", "gpu")["status"]["resources"]["nvidia.com/gpu"].AsString(), "1");
  Bind("a", name);
  loop_.RunFor(minutes(10));
  EXPECT_NE(Node(name), json::Value());
  EXPECT_EQ(ConditionOf(name, "Consolidatable", "message"), "pod d/a runs on it");
  EndPod("a");
  loop_.RunFor(seconds(58));
  EXPECT_NE(Node(name), json::Value());
  loop_.RunFor(seconds(10));
  EXPECT_EQ(Node(name), json::Value());
  EXPECT_EQ(OnlyClaim(), "0 claims");
  EXPECT_EQ(Told("DisruptionTerminating Disrupting Node: Empty for 60s"), 1u);
  EXPECT_EQ(Get(kPoolsPath, "", "gpu")["status"]["resources"]["nodes"].AsString(), "0");
}

TEST_F(AutoscalerTest, WithoutANodePoolNothingHappens) {
  Start();
  PutPod("a");
  loop_.RunFor(minutes(1));
  EXPECT_EQ(All(kClaimsPath).size(), 0u);
  PutPool();  // the pod waits still
  loop_.RunFor(seconds(3));
  EXPECT_EQ(All(kClaimsPath).size(), 1u);
}

TEST_F(AutoscalerTest, APoolThatCanHaveNoMachineSaysSo) {
  const auto with = [this](const char* capacity) {
    api_.Put(kPoolsPath,
             Yaml(fmt::format(
                 "{{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {{name: gpu}}, spec: "
                 "{{template: {{spec: {{requirements: [{{key: karpenter.sh/capacity-type, "
                 "operator: In, values: [{}]}}]}}}}}}}}",
                 capacity)));
    loop_.RunFor(seconds(3));
  };
  const auto says = [this](std::string_view type) {
    const json::Value condition =
        schema::FindCondition(Get(kPoolsPath, "", "gpu")["status"]["conditions"], type);
    return condition["status"].Str() + " " + condition["reason"].Str() + " " +
           condition["message"].Str();
  };
  const std::string filtered =
      "NoCompatibleInstanceTypes NodePool requirements filtered out all compatible available "
      "instance types";
  Start();
  with("preemptible");
  const std::string invalid =
      "no valid values found in [preemptible] for karpenter.sh/capacity-type, expected one of: "
      "[on-demand reserved spot]";
  EXPECT_EQ(says("ValidationSucceeded"), "False NodePoolValidationFailed " + invalid);
  EXPECT_EQ(says("Ready"), "False UnhealthyDependents ValidationSucceeded=False");
  EXPECT_EQ(Told(filtered + ": " + invalid), 1u);
  with("reserved");
  EXPECT_EQ(says("Ready"), "True Ready ");
  EXPECT_EQ(Told(filtered + ": no machine is offered as reserved"), 1u);
  with("preemptible, spot");
  EXPECT_EQ(says("ValidationSucceeded"), "True ValidationSucceeded ");
  PutPod("a");
  loop_.RunFor(seconds(3));
  EXPECT_EQ(All(kClaimsPath).size(), 1u);
}

TEST_F(AutoscalerTest, PodsOfOneBatchAreOnePlan) {
  PutPool();
  Start();
  for (int i = 0; i < 8; ++i) {
    PutPod("p" + std::to_string(i));
    loop_.RunFor(milliseconds(100));
  }
  EXPECT_EQ(All(kClaimsPath).size(), 0u);
  loop_.RunFor(seconds(2));
  EXPECT_EQ(All(kClaimsPath).size(), 8u);  // one GPU each is cheapest
}

// Complaint 2 (cluster-autoscaler #1949, #3164): machines that start count as there, also when
// their Node has joined and the GPUs have not appeared.
TEST_F(AutoscalerTest, NothingIsAskedForTwiceWhileANodeStarts) {
  PutPool();
  PutPod("a");
  Start(minutes(2));
  const std::string name = OnlyClaim();
  const auto change_something = [this](int times) {
    for (int i = 0; i < times; ++i) {
      PutPod("a", 1, fmt::format(", annotations: {{n: '{}'}}", i));
      api_.Put(kNodes, Yaml(fmt::format("{{metadata: {{name: other, labels: {{n: '{}'}}}}}}", i)));
      loop_.RunFor(seconds(10));
    }
  };
  change_something(10);
  EXPECT_EQ(OnlyClaim(), name);
  // Joined, without its GPU.
  JoinWithoutGpus(name);
  change_something(10);
  EXPECT_EQ(OnlyClaim(), name);
  PutPod("b");
  loop_.RunFor(seconds(3));
  EXPECT_EQ(All(kClaimsPath).size(), 2u);
}

// Complaint 1 (azure-karpenter-provider #1790; aws #3794): a GPU that never appears is given up,
// and another type is tried.
TEST_F(AutoscalerTest, ANodeWhoseGpuNeverAppearsIsReplacedByAnotherType) {
  PutPool();
  PutPod("a");
  Start();
  const std::string name = OnlyClaim();
  JoinWithoutGpus(name);
  loop_.RunFor(minutes(14));
  EXPECT_EQ(OnlyClaim(), name);
  EXPECT_EQ(ConditionOf(name, "Initialized", "reason"), "ResourceNotRegistered");
  loop_.RunFor(minutes(2));
  EXPECT_EQ(Told("InitializationTimeout"), 1u);
  EXPECT_EQ(Node(name), json::Value());
  const std::string next = OnlyClaim();
  EXPECT_NE(next, name);
  EXPECT_EQ(Claim(next)["metadata"]["labels"]["node.kubernetes.io/instance-type"].AsString(),
            "g5.2xlarge");
}

// Complaint 8 (comfyui-on-eks #6): scale to zero, and why a node stays.
TEST_F(AutoscalerTest, WhyANodeStaysIsSaid) {
  PutPool("{consolidateAfter: Never}");
  PutPod("a");
  Start(seconds(1));
  loop_.RunFor(seconds(5));
  const std::string name = OnlyClaim();
  Bind("a", name);
  loop_.RunFor(seconds(5));
  EndPod("a");
  loop_.RunFor(minutes(30));
  EXPECT_EQ(ConditionOf(name, "Consolidatable", "message"),
            "consolidateAfter of its NodePool is Never");
  PutPool("{consolidateAfter: 0s}");
  loop_.RunFor(seconds(10));
  EXPECT_EQ(OnlyClaim(), "0 claims");
}

TEST_F(AutoscalerTest, DoNotDisruptKeepsANode) {
  PutPool("{consolidateAfter: 0s}");
  PutPod("a");
  Start(seconds(1));
  loop_.RunFor(seconds(5));
  const std::string name = OnlyClaim();
  api_.Put(kNodes, Node(name).SetPath({"metadata", "annotations", kDoNotDisrupt}, "true"));
  Bind("a", name);
  loop_.RunFor(seconds(5));
  EndPod("a");
  loop_.RunFor(minutes(5));
  EXPECT_EQ(OnlyClaim(), name);
  EXPECT_TRUE(
      ConditionOf(name, "Consolidatable", "message").contains("karpenter.sh/do-not-disrupt"));
}

// A new node is empty until the scheduler has bound the pods for which it came.
TEST_F(AutoscalerTest, ANewNodeIsNotTakenForAnEmptyOne) {
  PutPool("{consolidateAfter: 0s}");
  PutPod("a");
  Start(seconds(1));
  loop_.RunFor(seconds(15));
  const std::string name = OnlyClaim();
  EXPECT_NE(Node(name), json::Value());
  EXPECT_EQ(Node(name)["spec"]["taints"].size(), 0u);
}

// Complaint 10 (karpenter #651): a pod that comes between the decision and its end.
TEST_F(AutoscalerTest, APodThatComesWhileTheNodeIsClosedOpensItAgain) {
  PutPool("{consolidateAfter: 0s}");
  PutPod("a");
  Start(seconds(1));
  loop_.RunFor(seconds(5));
  const std::string name = OnlyClaim();
  Bind("a", name);
  loop_.RunFor(seconds(30));
  PutPod("late", 0);
  EndPod("a");
  // Until the taint stands.
  for (int i = 0; i < 100 && Node(name)["spec"]["taints"].empty(); ++i)
    loop_.RunFor(milliseconds(10));
  ASSERT_EQ(Node(name)["spec"]["taints"].size(), 1u);
  Bind("late", name);  // was on its way
  loop_.RunFor(minutes(5));
  EXPECT_EQ(Node(name)["spec"]["taints"].size(), 0u);
  EXPECT_FALSE(Pod("late")["metadata"].Has("deletionTimestamp"));
}

// A server that starts anew does not begin to count anew: a node would never go.
TEST_F(AutoscalerTest, HowLongANodeWasEmptyOutlivesARestart) {
  PutPool("{consolidateAfter: 600s}");
  const auto put = [&](const std::string& name, std::string_view reason) {
    JoinWithoutGpus(name);
    const std::string before = FormatTime(loop_.Now() - seconds(590));
    api_.Put(kClaimsPath,
             Yaml(fmt::format(
                 "{{apiVersion: karpenter.sh/v1, kind: NodeClaim, metadata: {{name: {0}, labels: "
                 "{{karpenter.sh/nodepool: gpu, node.kubernetes.io/instance-type: m5.xlarge}}}}, "
                 "spec: {{}}, status: {{lastPodEventTime: '{1}', conditions: ["
                 "{{type: Launched, status: 'True'}}, {{type: Registered, status: 'True'}}, "
                 "{{type: Initialized, status: 'True', lastTransitionTime: '{1}'}}, "
                 "{{type: Consolidatable, status: 'False', reason: {2}}}]}}}}",
                 name, before, reason)));
  };
  put("idle", "Waiting");
  put("worked", "NodeNotEmpty");
  Start();
  EXPECT_FALSE(Claim("idle").IsNull());
  loop_.RunFor(seconds(30));
  EXPECT_EQ(Told("DisruptionTerminating Disrupting Node: Empty for"), 1u);
  EXPECT_FALSE(Claim("worked").IsNull());
  EXPECT_EQ(ConditionOf("worked", "Consolidatable", "reason"), "Waiting");
  EXPECT_GT(Claim("worked")["status"]["lastPodEventTime"].Str(),
            FormatTime(loop_.Now() - seconds(60)));
  loop_.RunFor(minutes(10));
  EXPECT_EQ(Told("DisruptionTerminating Disrupting Node: Empty for"), 2u);
}

TEST_F(AutoscalerTest, BudgetsLetOneNodeGoAtATime) {
  PutPool("{consolidateAfter: 0s, budgets: [{nodes: '0'}]}");
  PutPod("a");
  PutPod("b");
  Start(seconds(1));
  loop_.RunFor(minutes(5));
  EXPECT_EQ(All(kClaimsPath).size(), 2u);
  for (const json::Value& claim : All(kClaimsPath)) {
    EXPECT_TRUE(ConditionOf(claim["metadata"]["name"].Str(), "Consolidatable", "message")
                    .contains("as its budgets allow"));
  }
  // The pods are gone for good.
  api_.Remove(kPods, "d", "a");
  api_.Remove(kPods, "d", "b");
  PutPool("{consolidateAfter: 0s, budgets: [{nodes: '1'}]}");
  size_t least = 2;
  while (!All(kClaimsPath).empty() && loop_.Now() < Time(hours(24 * 365 * 200))) {
    loop_.RunFor(milliseconds(200));
    size_t closed = 0;
    for (const json::Value& node : All(kNodes)) closed += node["spec"]["taints"].empty() ? 0 : 1;
    EXPECT_LE(closed, 1u);
    least = std::min(least, All(kClaimsPath).size());
    if (api_.requests.size() > 100'000) break;
  }
  EXPECT_EQ(least, 0u);
}

// `kubectl delete nodeclaim`: what runs there is told to go, through its budget.
TEST_F(AutoscalerTest, AClaimThatIsDeletedEmptiesItsNodeFirst) {
  PutPool();
  PutPod("a");
  PutPod("web", 0);
  Start(seconds(1));
  loop_.RunFor(seconds(5));
  const std::string name = OnlyClaim();
  Bind("a", name);
  Bind("web", name);
  held_.insert("web");
  loop_.RunFor(seconds(2));
  api_.Put(kClaimsPath,
           Claim(name).SetPath({"metadata", "deletionTimestamp"}, FormatTime(loop_.Now())));
  loop_.RunFor(seconds(20));
  EXPECT_TRUE(Pod("a")["metadata"].Has("deletionTimestamp"));
  EXPECT_FALSE(Pod("web")["metadata"].Has("deletionTimestamp"));
  api_.Remove(kPods, "d", "a");
  loop_.RunFor(seconds(20));
  EXPECT_NE(Node(name), json::Value());
  held_.clear();
  loop_.RunFor(seconds(60));
  EXPECT_TRUE(Pod("web")["metadata"].Has("deletionTimestamp"));
  api_.Remove(kPods, "d", "web");
  loop_.RunFor(seconds(5));
  EXPECT_EQ(Node(name), json::Value());
  EXPECT_EQ(OnlyClaim(), "0 claims");
}

// Deleted, or a spot node that was taken back.
TEST_F(AutoscalerTest, ANodeThatIsGoneIsAskedForAnewIfItsPodsWait) {
  PutPool();
  PutPod("a");
  Start(seconds(1));
  loop_.RunFor(seconds(5));
  const std::string name = OnlyClaim();
  Bind("a", name);
  loop_.RunFor(seconds(5));
  api_.Remove(kNodes, "", name);
  api_.Remove(kPods, "d", "a");
  PutPod("a2");
  loop_.RunFor(seconds(10));
  EXPECT_EQ(Claim(name), json::Value());
  EXPECT_NE(OnlyClaim(), "0 claims");
  EXPECT_EQ(Told("NodeLost"), 1u);
}

TEST_F(AutoscalerTest, WhatCannotBeAddedIsSaidOnce) {
  PutPool("{consolidateAfter: 0s}", ", limits: {nvidia.com/gpu: 0}");
  PutPod("a");
  Start();
  loop_.RunFor(minutes(1));
  EXPECT_EQ(All(kClaimsPath).size(), 0u);
  EXPECT_EQ(Told("NoNodeAdded no node is added: NodePool gpu: its limit of 0 nvidia.com/gpu is "
                 "reached (0 there)"),
            1u);
}

TEST_F(AutoscalerTest, AtRestNothingIsWritten) {
  PutPool();
  PutPod("a");
  Start(seconds(1));
  loop_.RunFor(seconds(5));
  Bind("a", OnlyClaim());
  loop_.RunFor(minutes(1));
  const size_t requests = api_.requests.size();
  loop_.RunFor(hours(1));
  EXPECT_EQ(api_.requests.size(), requests);
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

}  // namespace
}  // namespace muster::autoscaler
