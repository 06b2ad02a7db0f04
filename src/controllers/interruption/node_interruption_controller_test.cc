#include "controllers/interruption/node_interruption_controller.h"

#include <algorithm>

#include "cluster/interruption.h"
#include "controllers/controller_test_base.h"
#include "schema/conditions.h"

namespace muster::controllers {
namespace {

constexpr char kBudgets[] = "/apis/policy/v1/poddisruptionbudgets";

class NodeInterruptionTest : public ControllerTest {
 protected:
  NodeInterruptionTest() {
    // The eviction subresource: a pod that is evicted is marked, as one with a grace is.
    api_.before_handle = [this](const net::Request& request, const net::ResponseWriterPtr& writer) {
      if (!request.target.contains("/eviction")) return true;
      const json::Value body = client::FakeApi::BodyOf(request);
      const std::string name = body["metadata"]["name"].Str();
      ++tries_;
      if (name == held_) {
        client::FakeApi::SendError(*writer, 429, "TooManyRequests", "budget");
        return false;
      }
      grace_[name] = body["deleteOptions"]["gracePeriodSeconds"].AsInt();
      api_.Put(kPods, Get(kPods, "d", name)
                          .SetPath({"metadata", "deletionTimestamp"}, FormatTime(loop_.Now()))
                          .SetPath({"metadata", "deletionGracePeriodSeconds"}, grace_[name]));
      net::Response response;
      response.status = 201;
      response.body = R"({"kind":"Status","status":"Success","code":201,"metadata":{}})";
      writer->Send(std::move(response));
      return false;
    };
    PutNode("n1");
    PutNode("other");
  }
  void PutNode(const std::string& name, std::string_view labels = "{}",
               std::string_view spec = "{}") {
    Put(kNodes, fmt::format("{{apiVersion: v1, kind: Node, metadata: {{name: {}, labels: {}}}, "
                            "spec: {}, status: {{}}}}",
                            name, labels, spec));
  }
  void PutPod(const std::string& name, const std::string& node = "n1",
              std::string_view more_spec = "", std::string_view more_metadata = "") {
    Put(kPods, fmt::format("{{apiVersion: v1, kind: Pod, metadata: {{name: {}, namespace: d{}}}, "
                           "spec: {{nodeName: {}{}}}, status: {{phase: Running}}}}",
                           name, more_metadata, node, more_spec));
  }
  void Notice(Duration after) {
    api_.Put(kNodes, Node().SetPath({"metadata", "annotations", cluster::kInterruptionDeadline},
                                    FormatTime(loop_.Now() + after)));
  }
  void TakeBackNotice() {
    api_.Put(kNodes,
             Node().RemovePath({"metadata", "annotations", cluster::kInterruptionDeadline}));
  }
  void StartIt() { Start(std::make_unique<NodeInterruptionController>()); }
  json::Value Node() { return Get(kNodes, "", "n1"); }
  std::string Condition(std::string_view what) {
    return schema::FindCondition(Node()["status"]["conditions"],
                                 cluster::kInterruptedCondition)[what]
        .Str();
  }
  bool Saw(std::string_view part) const {
    return std::ranges::any_of(Events(),
                               [&](const std::string& event) { return event.contains(part); });
  }

  std::string held_;  // by a budget
  int tries_ = 0;
  std::map<std::string, int64_t> grace_;
};

TEST_F(NodeInterruptionTest, ANoticeClosesTheNodeAndTellsItsPods) {
  PutPod("trainer", "n1", ", terminationGracePeriodSeconds: 600");
  PutPod("brief", "n1", ", terminationGracePeriodSeconds: 5");
  PutPod("elsewhere", "other");
  StartIt();
  EXPECT_EQ(tries_, 0);
  Notice(seconds(60));
  Settle();
  EXPECT_TRUE(Node()["spec"]["unschedulable"].AsBool());
  const json::Value& taint = Node()["spec"]["taints"].At(0);
  EXPECT_EQ(taint["key"].AsString(), "muster.dev/interrupted");
  EXPECT_EQ(taint["effect"].AsString(), "NoSchedule");
  EXPECT_EQ(Condition("status"), "True");
  EXPECT_EQ(Condition("reason"), "InterruptionNotice");
  EXPECT_TRUE(Saw("SpotInterrupted Node n1 is taken back at "));
  // No more grace than there is; less if it wants less.
  EXPECT_GE(grace_["trainer"], 55);
  EXPECT_LE(grace_["trainer"], 60);
  EXPECT_EQ(grace_["brief"], 5);
  EXPECT_FALSE(grace_.contains("elsewhere"));
  const json::Value& condition = Get(kPods, "d", "trainer")["status"]["conditions"].At(0);
  EXPECT_EQ(condition["type"].AsString(), "DisruptionTarget");
  EXPECT_EQ(condition["status"].AsString(), "True");
  EXPECT_EQ(condition["reason"].AsString(), "NodeInterruption");
  EXPECT_EQ(tries_, 2);
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

TEST_F(NodeInterruptionTest, WhoCameBeforeTheTaintStandsIsToldToo) {
  StartIt();
  Notice(seconds(60));
  Settle();
  PutPod("late");
  Settle();
  EXPECT_TRUE(grace_.contains("late"));
}

TEST_F(NodeInterruptionTest, DaemonsAndWhoToleratesItStayToTheEnd) {
  PutPod("daemon", "n1", "",
         ", ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: x, uid: u, controller: "
         "true}]");
  PutPod("tolerant", "n1", ", tolerations: [{operator: Exists}]");
  StartIt();
  Notice(seconds(60));
  Settle();
  EXPECT_EQ(tries_, 0);
  loop_.RunFor(seconds(61));
  EXPECT_EQ(Get(kPods, "d", "daemon"), json::Value());
  EXPECT_EQ(Get(kPods, "d", "tolerant"), json::Value());
  EXPECT_NE(Node(), json::Value());
  EXPECT_EQ(Condition("reason"), "TakenBack");
}

TEST_F(NodeInterruptionTest, ABudgetHoldsAPodBackUntilTheDeadline) {
  held_ = "web";
  PutPod("web");
  StartIt();
  Notice(seconds(100));
  loop_.RunFor(seconds(50));
  EXPECT_GT(tries_, 1);
  EXPECT_FALSE(Get(kPods, "d", "web")["metadata"].Has("deletionTimestamp"));
  loop_.RunFor(seconds(60));
  EXPECT_EQ(Get(kPods, "d", "web"), json::Value());
}

TEST_F(NodeInterruptionTest, ABudgetThatAllowsMoreLetsThePodGoAtOnce) {
  held_ = "web";
  PutPod("web");
  StartIt();
  Notice(minutes(30));
  loop_.RunFor(minutes(10));  // by now it is tried seldom
  held_ = "";
  Put(kBudgets, "{metadata: {name: b, namespace: d}, status: {disruptionsAllowed: 1}}");
  Settle();
  EXPECT_TRUE(grace_.contains("web"));
}

TEST_F(NodeInterruptionTest, ASimulatedNodeIsGoneAtTheDeadline) {
  PutNode("n1", "{muster.dev/simulated: 'true'}");
  PutPod("p");
  StartIt();
  Notice(seconds(30));
  loop_.RunFor(seconds(29));
  EXPECT_NE(Node(), json::Value());
  loop_.RunFor(seconds(2));
  EXPECT_EQ(Node(), json::Value());
  EXPECT_NE(Get(kNodes, "", "other"), json::Value());
}

TEST_F(NodeInterruptionTest, TakenBackItUndoesWhatItDid) {
  StartIt();
  Notice(seconds(30));
  Settle();
  TakeBackNotice();
  loop_.RunFor(seconds(40));
  EXPECT_FALSE(Node()["spec"]["unschedulable"].AsBool());
  EXPECT_EQ(Node()["spec"]["taints"].size(), 0u);
  EXPECT_EQ(Node()["metadata"]["annotations"].size(), 0u);
  EXPECT_EQ(Condition("status"), "False");
  EXPECT_TRUE(Saw("InterruptionTakenBack"));
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

TEST_F(NodeInterruptionTest, ADeadlineThatCannotBeReadIsSaidOnce) {
  PutPod("p");
  StartIt();
  const auto says = [&](const char* text) {
    api_.Put(kNodes,
             Node().SetPath({"metadata", "annotations", cluster::kInterruptionDeadline}, text));
    Settle();
  };
  says("soon");
  EXPECT_TRUE(Saw("InvalidInterruptionDeadline Node n1: annotation muster.dev/interruption-"
                  "deadline: \"soon\" is not a time"));
  const size_t events = Events().size();
  api_.Put(kNodes, Node().SetPath({"metadata", "labels", "a"}, "b"));
  Settle();
  EXPECT_EQ(Events().size(), events);
  EXPECT_FALSE(Node()["spec"]["unschedulable"].AsBool());
  EXPECT_EQ(tries_, 0);
  // What was a notice, and is none any more, is taken back, too.
  Notice(seconds(60));
  Settle();
  EXPECT_TRUE(Node()["spec"]["unschedulable"].AsBool());
  says("later");
  EXPECT_FALSE(Node()["spec"]["unschedulable"].AsBool());
  EXPECT_TRUE(Saw("\"later\" is not a time"));
}

TEST_F(NodeInterruptionTest, WhatSomebodyElseCordonedStaysCordoned) {
  PutNode("n1", "{}", "{unschedulable: true, taints: [{key: mine, effect: NoSchedule}]}");
  StartIt();
  Notice(seconds(30));
  Settle();
  EXPECT_EQ(Node()["spec"]["taints"].size(), 2u);
  TakeBackNotice();
  Settle();
  EXPECT_TRUE(Node()["spec"]["unschedulable"].AsBool());
  ASSERT_EQ(Node()["spec"]["taints"].size(), 1u);
  EXPECT_EQ(Node()["spec"]["taints"].At(0)["key"].AsString(), "mine");
}

TEST(Interruption, ADeadlineThatCannotBeReadIsNone) {
  EXPECT_FALSE(cluster::InterruptionDeadline(
                   Yaml("{metadata: {annotations: {muster.dev/interruption-deadline: soon}}}"))
                   .has_value());
}

}  // namespace
}  // namespace muster::controllers
