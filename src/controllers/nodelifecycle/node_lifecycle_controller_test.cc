#include "controllers/nodelifecycle/node_lifecycle_controller.h"

#include "controllers/controller_test_base.h"

namespace muster::controllers {
namespace {

class NodeLifecycleTest : public ControllerTest {
 protected:
  void MakeNode() {
    Put(kNodes, R"(
apiVersion: v1
kind: Node
metadata: {name: n1}
spec: {}
status:
  conditions:
  - {type: Ready, status: 'True'}
  - {type: DiskPressure, status: 'False'}
  - {type: Mine, status: 'True'})");
  }
  void Renew() {
    Put(kLeases, fmt::format("{{metadata: {{name: n1, namespace: kube-node-lease}}, "
                             "spec: {{renewTime: '{}'}}}}",
                             FormatMicroTime(loop_.Now())));
  }
  void MakePod(const std::string& name, std::string_view tolerations = "[]") {
    Put(kPods, fmt::format("{{apiVersion: v1, kind: Pod, metadata: {{name: {}, namespace: d}}, "
                           "spec: {{nodeName: n1, tolerations: {}}}}}",
                           name, tolerations));
  }
  std::string Ready() {
    return Get(kNodes, "", "n1")["status"]["conditions"].At(0)["status"].Str();
  }
  size_t Taints() { return Get(kNodes, "", "n1")["spec"]["taints"].size(); }
};

TEST_F(NodeLifecycleTest, RenewedNodesStayReady) {
  MakeNode();
  Renew();
  Start(std::make_unique<NodeLifecycleController>());
  for (int i = 0; i < 12; ++i) {
    loop_.RunFor(seconds(10));
    Renew();
  }
  EXPECT_EQ(Ready(), "True");
  EXPECT_EQ(Taints(), 0u);
}

TEST_F(NodeLifecycleTest, SilentNodesBecomeUnknownAndComeBack) {
  MakeNode();
  Renew();
  Start(std::make_unique<NodeLifecycleController>());
  loop_.RunFor(kNodeMonitorGracePeriod);
  const json::Value node = Get(kNodes, "", "n1");
  EXPECT_EQ(Ready(), "Unknown");
  EXPECT_EQ(node["status"]["conditions"].At(0)["reason"].AsString(), "NodeStatusUnknown");
  EXPECT_EQ(node["status"]["conditions"].At(1)["status"].AsString(), "Unknown");
  EXPECT_EQ(node["status"]["conditions"].At(2)["status"].AsString(), "True");
  EXPECT_EQ(Taints(), 2u);
  EXPECT_EQ(node["spec"]["taints"].At(0)["key"].AsString(), kUnreachableTaint);
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
  MakeNode();  // the kubelet posts its status again
  Renew();
  Settle();
  EXPECT_EQ(Taints(), 0u);
}

TEST_F(NodeLifecycleTest, ANodeThatDiesWhileTheClockIsSetBackIsNoticed) {
  MakeNode();
  Renew();
  Start(std::make_unique<NodeLifecycleController>());
  loop_.RunFor(seconds(10));
  loop_.JumpClock(-hours(1));
  loop_.RunFor(2 * kNodeMonitorGracePeriod);
  EXPECT_EQ(Ready(), "Unknown");
}

TEST_F(NodeLifecycleTest, NoNodeIsLostBecauseTheClockWasSet) {
  MakeNode();
  Renew();
  Start(std::make_unique<NodeLifecycleController>());
  for (const Duration jump : {Duration(hours(1)), Duration(hours(-1)), Duration(hours(48))}) {
    loop_.RunFor(seconds(25));
    loop_.JumpClock(jump);
    for (int i = 0; i < 12; ++i) {
      loop_.RunFor(seconds(15));  // the next renewal is late, and the timer of the last one comes
      EXPECT_EQ(Ready(), "True") << jump / hours(1);
      EXPECT_EQ(Taints(), 0u);
      Renew();
    }
  }
  loop_.JumpClock(hours(1));
  loop_.RunFor(3 * kNodeMonitorGracePeriod);
  EXPECT_EQ(Ready(), "Unknown") << "a silent one is noticed all the same";
}

TEST_F(NodeLifecycleTest, NotReadyNodesAreTainted) {
  Put(kNodes,
      "{metadata: {name: n1}, spec: {taints: [{key: mine, effect: NoSchedule}]}, "
      "status: {conditions: [{type: Ready, status: 'False'}]}}");
  Renew();
  Start(std::make_unique<NodeLifecycleController>());
  ASSERT_EQ(Taints(), 3u);
  EXPECT_EQ(Get(kNodes, "", "n1")["spec"]["taints"].At(1)["key"].AsString(), kNotReadyTaint);
}

TEST_F(NodeLifecycleTest, NodesUnderPressureTakeNoNewPods) {
  const auto put = [this](std::string_view disk, std::string_view memory) {
    Put(kNodes, fmt::format("{{metadata: {{name: n1}}, spec: {{taints: [{{key: mine, effect: "
                            "NoSchedule}}, {{key: node.kubernetes.io/disk-pressure, effect: "
                            "NoExecute}}]}}, status: {{conditions: [{{type: Ready, status: 'True'"
                            "}}, {{type: DiskPressure, status: '{}'}}, {{type: MemoryPressure, "
                            "status: '{}'}}]}}}}",
                            disk, memory));
    Settle();
  };
  Renew();
  Start(std::make_unique<NodeLifecycleController>());
  MakePod("p");
  put("True", "False");
  // A taint that somebody else gave, with another effect, is not ours.
  ASSERT_EQ(Taints(), 3u);
  const json::Value taint = Get(kNodes, "", "n1")["spec"]["taints"].At(2);
  EXPECT_EQ(taint["key"].AsString(), kDiskPressureTaint);
  EXPECT_EQ(taint["effect"].AsString(), "NoSchedule");
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
  api_.Put(kNodes, Get(kNodes, "", "n1").SetPath({"status", "conditions"}, json::Array{}));
  Settle();
  EXPECT_EQ(Taints(), 2u);
  put("True", "True");
  EXPECT_EQ(Taints(), 4u);
  put("Unknown", "False");
  EXPECT_EQ(Taints(), 2u);
  EXPECT_FALSE(Get(kPods, "d", "p").IsNull());
}

TEST_F(NodeLifecycleTest, AnOldLeaseAtOurStartGetsTheWholePeriod) {
  MakeNode();
  Renew();
  loop_.RunFor(hours(1));
  Start(std::make_unique<NodeLifecycleController>());
  loop_.RunFor(kNodeMonitorGracePeriod - seconds(10));
  EXPECT_EQ(Ready(), "True");
}

TEST_F(NodeLifecycleTest, NodesWithoutLeaseAreLeftAlone) {
  MakeNode();
  Start(std::make_unique<NodeLifecycleController>());
  loop_.RunFor(hours(1));
  EXPECT_EQ(Ready(), "True");
}

TEST_F(NodeLifecycleTest, PodsLeaveWhenTheirTolerationEnds) {
  MakeNode();
  Renew();
  MakePod("none");
  MakePod("minute",
          "[{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, "
          "tolerationSeconds: 60}]");
  MakePod("forever", "[{operator: Exists}]");
  Start(std::make_unique<NodeLifecycleController>());
  loop_.RunFor(kNodeMonitorGracePeriod);
  EXPECT_TRUE(Get(kPods, "d", "none").IsNull());
  EXPECT_FALSE(Get(kPods, "d", "minute").IsNull());
  loop_.RunFor(seconds(60));
  EXPECT_TRUE(Get(kPods, "d", "minute").IsNull());
  EXPECT_FALSE(Get(kPods, "d", "forever").IsNull());
}

TEST_F(NodeLifecycleTest, PodsOfARemovedNodeAreRemoved) {
  MakeNode();
  Renew();
  MakePod("a");
  Start(std::make_unique<NodeLifecycleController>());
  api_.Remove(kNodes, "", "n1");
  Settle();
  EXPECT_TRUE(Get(kPods, "d", "a").IsNull());
}

}  // namespace
}  // namespace muster::controllers
