// Nodes that go because their pods fit on others, and those that do not.

#include <algorithm>

#include "autoscaler/autoscaler_test_base.h"

namespace muster::autoscaler {
namespace {

class ConsolidationTest : public AutoscalerTest {
 protected:
  ConsolidationTest() { PutPool("{consolidateAfter: 60s}"); }
  // A node of the pool with a pod on it that wants no GPU.
  std::string NodeWith(const std::string& pod, const std::string& owner) {
    const std::vector<json::Value> before = All(kClaimsPath);
    PutPod("brings-" + pod);
    loop_.RunFor(seconds(8));
    std::string name;
    for (const json::Value& claim : All(kClaimsPath)) {
      const bool known = std::ranges::any_of(before, [&claim](const json::Value& other) {
        return other["metadata"]["name"] == claim["metadata"]["name"];
      });
      if (!known) name = claim["metadata"]["name"].Str();
    }
    Bind("brings-" + pod, name);
    PutOwned(pod, owner, name);
    brought_.push_back("brings-" + pod);
    return name;
  }
  // What brought the nodes ends.
  void EndOthers() {
    loop_.RunFor(seconds(1));
    for (const std::string& pod : brought_) api_.Remove(kPods, "d", pod);
    brought_.clear();
    loop_.RunFor(seconds(1));
  }
  void PutOwned(const std::string& pod, const std::string& owner, const std::string& node) {
    const std::string owners =
        owner.empty() ? ""
                      : ", labels: {app: web}, ownerReferences: [{apiVersion: v1, kind: " + owner +
                            ", name: o, uid: u, controller: true}]";
    api_.Put(kPods, Yaml(fmt::format(
                        "{{apiVersion: v1, kind: Pod, metadata: {{name: {}, namespace: d{}}}, "
                        "spec: {{nodeName: {}, schedulerName: default-scheduler, containers: "
                        "[{{name: c, resources: {{requests: {{cpu: 1}}}}}}]}}, status: "
                        "{{phase: Running}}}}",
                        pod, owners, node)));
  }
  void PutOtherNode(int cpus) {
    api_.Put(kNodes, Yaml(fmt::format("{{apiVersion: v1, kind: Node, metadata: {{name: other}}, "
                                      "status: {{allocatable: {{cpu: {}, pods: 110}}}}}}",
                                      cpus)));
  }
  std::vector<std::string> brought_;
  bool IsTold(const std::string& pod) { return Pod(pod)["metadata"].Has("deletionTimestamp"); }
};

// Complaint 5 (aws #8447): a stray pod that wants no GPU keeps no GPU node.
TEST_F(ConsolidationTest, AGpuNodeGoesWhenWhatIsLeftOnItFitsElsewhere) {
  Start(seconds(1));
  const std::string node = NodeWith("web", "ReplicaSet");
  EndOthers();
  loop_.RunFor(minutes(10));
  EXPECT_EQ(OnlyClaim(), node);  // there is no other node
  PutOtherNode(4);
  PutOwned("nudge", "ReplicaSet", node);
  loop_.RunFor(seconds(50));
  EXPECT_FALSE(IsTold("web"));
  loop_.RunFor(seconds(20));
  EXPECT_TRUE(IsTold("web"));
  EXPECT_TRUE(IsTold("nudge"));
  EXPECT_EQ(Told("Underutilized, its 2 pod(s) fit on other nodes"), 1u);
  api_.Remove(kPods, "d", "web");
  api_.Remove(kPods, "d", "nudge");
  loop_.RunFor(seconds(5));
  EXPECT_EQ(OnlyClaim(), "0 claims");
  EXPECT_EQ(Node(node), json::Value());
}

// Complaint 7 (karpenter #701, #1167): what has been worked out is not thrown away to save money.
TEST_F(ConsolidationTest, BatchPodsAndThoseThatNobodyMakesAgainStay) {
  Start(seconds(1));
  PutOtherNode(64);
  const std::string of_job = NodeWith("job", "Job");
  const std::string of_gang = NodeWith("rank", "PyTorchJob");
  const std::string alone = NodeWith("alone", "");
  EndOthers();
  loop_.RunFor(hours(2));
  EXPECT_EQ(All(kClaimsPath).size(), 3u);
  for (const char* pod : {"job", "rank", "alone"}) EXPECT_FALSE(IsTold(pod)) << pod;
  for (const std::string& node : {of_job, of_gang, alone})
    EXPECT_EQ(Node(node)["spec"]["taints"].size(), 0u);
}

TEST_F(ConsolidationTest, WhenEmptyMeansEmpty) {
  PutPool("{consolidateAfter: 60s, consolidationPolicy: WhenEmpty}");
  Start(seconds(1));
  PutOtherNode(64);
  const std::string node = NodeWith("web", "ReplicaSet");
  EndOthers();
  loop_.RunFor(hours(1));
  EXPECT_EQ(OnlyClaim(), node);
}

TEST_F(ConsolidationTest, AnnotationsAndBudgetsHoldPods) {
  Start(seconds(1));
  PutOtherNode(64);
  api_.Put("/apis/policy/v1/poddisruptionbudgets",
           Yaml("{metadata: {name: b, namespace: d}, spec: {selector: {matchLabels: {app: web}}}, "
                "status: {disruptionsAllowed: 0}}"));
  const std::string node = NodeWith("web", "ReplicaSet");
  EndOthers();
  loop_.RunFor(hours(1));
  EXPECT_EQ(OnlyClaim(), node);
  api_.Put(kPods, Pod("web").SetPath({"metadata", "annotations", kDoNotDisrupt}, "true"));
  api_.Remove("/apis/policy/v1/poddisruptionbudgets", "d", "b");
  PutOwned("more", "ReplicaSet", node);
  loop_.RunFor(hours(1));
  EXPECT_EQ(OnlyClaim(), node);
  EXPECT_FALSE(IsTold("web"));
}

// Complaint 10, again: a batch pod that was bound before the taint stood.
TEST_F(ConsolidationTest, ANodeThatWasClosedIsLookedAtOnceMore) {
  Start(seconds(1));
  PutOtherNode(64);
  const std::string node = NodeWith("web", "ReplicaSet");
  EndOthers();
  for (int i = 0; i < 10'000 && Node(node)["spec"]["taints"].empty(); ++i)
    loop_.RunFor(milliseconds(20));
  ASSERT_EQ(Node(node)["spec"]["taints"].size(), 1u);
  PutOwned("job", "Job", node);
  loop_.RunFor(minutes(30));
  EXPECT_EQ(Node(node)["spec"]["taints"].size(), 0u);
  EXPECT_EQ(OnlyClaim(), node);
  EXPECT_FALSE(IsTold("web"));
}

TEST_F(ConsolidationTest, WhilePodsWaitNothingGoes) {
  Start(seconds(1));
  PutOtherNode(64);
  const std::string node = NodeWith("web", "ReplicaSet");
  EndOthers();
  PutPod("never", 64);
  loop_.RunFor(hours(1));
  EXPECT_EQ(OnlyClaim(), node);
  EXPECT_EQ(Node(node)["spec"]["taints"].size(), 0u);
  api_.Remove(kPods, "d", "never");
  PutOwned("more", "ReplicaSet", node);
  loop_.RunFor(minutes(2));
  EXPECT_TRUE(IsTold("web"));
}

// Of two half-empty nodes one goes, not both.
TEST_F(ConsolidationTest, OfTwoThatFitOnOneOneGoes) {
  Start(seconds(1));
  NodeWith("a", "ReplicaSet");
  NodeWith("b", "ReplicaSet");
  EndOthers();
  EXPECT_EQ(All(kClaimsPath).size(), 2u);
  loop_.RunFor(minutes(5));
  EXPECT_NE(IsTold("a"), IsTold("b"));
  const std::string gone = IsTold("a") ? "a" : "b";
  api_.Remove(kPods, "d", gone);
  const std::string left = gone == "a" ? "b" : "a";
  loop_.RunFor(minutes(5));
  EXPECT_EQ(OnlyClaim(), Pod(left)["spec"]["nodeName"].AsString());
  EXPECT_FALSE(IsTold(left));
}

}  // namespace
}  // namespace muster::autoscaler
