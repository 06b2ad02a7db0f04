#include "controllers/nodelifecycle/node_lifecycle_controller.h"

#include "controllers/controller_test_base.h"
#include "controllers/tainteviction/taint_eviction_controller.h"

namespace muster::controllers {
namespace {

class NodeLifecycleTest : public ControllerTest {
 protected:
  // While no node is Ready none is emptied; this one has no Lease and always is.
  NodeLifecycleTest() { PutNode("healthy", "True"); }
  void PutNode(const std::string& name, std::string_view ready, std::string_view zone = "") {
    Put(kNodes, fmt::format("{{apiVersion: v1, kind: Node, metadata: {{name: {}, labels: "
                            "{{topology.kubernetes.io/zone: '{}'}}}}, spec: {{}}, status: "
                            "{{conditions: [{{type: Ready, status: '{}', lastTransitionTime: "
                            "'{}'}}]}}}}",
                            name, zone, ready, FormatTime(loop_.Now())));
  }
  // Nodes of that effect's taint among those whose name begins so.
  size_t Tainted(std::string_view prefix, std::string_view effect) {
    size_t count = 0;
    for (const json::Value& node : All(kNodes)) {
      if (!node["metadata"]["name"].AsString().starts_with(prefix)) continue;
      for (const json::Value& taint : node["spec"]["taints"].items())
        count += taint["effect"].AsString() == effect ? 1 : 0;
    }
    return count;
  }
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
  Add(std::make_unique<TaintEvictionController>());
  Start(std::make_unique<NodeLifecycleController>());
  loop_.RunFor(kNodeMonitorGracePeriod);
  EXPECT_TRUE(Get(kPods, "d", "none").IsNull());
  EXPECT_FALSE(Get(kPods, "d", "minute").IsNull());
  loop_.RunFor(seconds(60));
  EXPECT_TRUE(Get(kPods, "d", "minute").IsNull());
  EXPECT_FALSE(Get(kPods, "d", "forever").IsNull());
}

// Services would go on sending requests to them.
TEST_F(NodeLifecycleTest, PodsOfASilentNodeAreNotReady) {
  MakeNode();
  Renew();
  MakePod("p", "[{operator: Exists}]");
  MakeReady(Get(kPods, "d", "p"));
  Start(std::make_unique<NodeLifecycleController>());
  const auto ready = [this] { return Get(kPods, "d", "p")["status"]["conditions"].At(0); };
  EXPECT_EQ(ready()["status"].AsString(), "True");
  loop_.RunFor(kNodeMonitorGracePeriod);
  EXPECT_EQ(ready()["status"].AsString(), "False");
  const auto since = ParseTime(ready()["lastTransitionTime"].AsString());
  EXPECT_GE(since, loop_.Now() - seconds(10));
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
  const std::vector<std::string> events = Events();
  EXPECT_EQ(std::count(events.begin(), events.end(), "NodeNotReady Node is not ready"), 1);
}

// A node that talks knows better; but what it said before it was NotReady does not count.
TEST_F(NodeLifecycleTest, ANodeThatIsNotReadyMaySayThatAPodIs) {
  PutNode("n1", "True");
  MakePod("p", "[{operator: Exists}]");
  MakeReady(Get(kPods, "d", "p"));
  Start(std::make_unique<NodeLifecycleController>());
  const auto ready = [this] {
    return Get(kPods, "d", "p")["status"]["conditions"].At(0)["status"].Str();
  };
  loop_.RunFor(seconds(5));
  PutNode("n1", "False");
  Settle();
  EXPECT_EQ(ready(), "False");
  MakeReady(Get(kPods, "d", "p"));
  Settle();
  EXPECT_EQ(ready(), "True");
}

TEST_F(NodeLifecycleTest, NodesAreEmptiedOneAfterTheOther) {
  for (int i = 0; i < 4; ++i) PutNode(fmt::format("ok-{}", i), "True", "a");
  for (int i = 0; i < 3; ++i) PutNode(fmt::format("bad-{}", i), "False", "a");
  PutNode("other", "False", "b");
  Start(std::make_unique<NodeLifecycleController>());
  EXPECT_EQ(Tainted("bad", "NoSchedule"), 3u);
  EXPECT_EQ(Tainted("bad", "NoExecute"), 1u);
  EXPECT_EQ(Tainted("other", "NoExecute"), 1u);
  loop_.RunFor(kEvictionPeriod);
  EXPECT_EQ(Tainted("bad", "NoExecute"), 2u);
  loop_.RunFor(kEvictionPeriod);
  EXPECT_EQ(Tainted("bad", "NoExecute"), 3u);
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

TEST_F(NodeLifecycleTest, ASmallZoneInTroubleIsNotEmptiedALargeOneSlowly) {
  for (int i = 0; i < 4; ++i) PutNode(fmt::format("small-{}", i), i < 3 ? "False" : "True", "a");
  for (int i = 0; i < 51; ++i)
    PutNode(fmt::format("large-{:02}", i), i < 40 ? "False" : "True", "b");
  Start(std::make_unique<NodeLifecycleController>());
  loop_.RunFor(seconds(250));
  EXPECT_EQ(Tainted("small", "NoSchedule"), 3u);
  EXPECT_EQ(Tainted("small", "NoExecute"), 0u);
  EXPECT_EQ(Tainted("large", "NoExecute"), 3u);
  PutNode("small-0", "True", "a");
  loop_.RunFor(seconds(20));
  EXPECT_EQ(Tainted("small", "NoExecute"), 2u);
}

TEST_F(NodeLifecycleTest, NoNodeIsEmptiedWhileNoneIsReady) {
  PutNode("bad-0", "False");
  PutNode("bad-1", "False");
  Start(std::make_unique<NodeLifecycleController>());
  loop_.RunFor(kEvictionPeriod);
  EXPECT_EQ(Tainted("bad", "NoExecute"), 2u);
  PutNode("healthy", "False");
  Settle();
  EXPECT_EQ(Tainted("bad", "NoExecute"), 0u);
  EXPECT_EQ(Tainted("", "NoSchedule"), 3u);
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
  PutNode("healthy", "True");
  loop_.RunFor(2 * kEvictionPeriod);
  EXPECT_EQ(Tainted("bad", "NoExecute"), 2u);
}

TEST_F(NodeLifecycleTest, UnreachableBecomesNotReadyAtOnce) {
  MakeNode();
  Renew();
  PutNode("bad", "False");
  Start(std::make_unique<NodeLifecycleController>());
  loop_.RunFor(kNodeMonitorGracePeriod);
  ASSERT_EQ(Taints(), 2u);
  json::Value node = Get(kNodes, "", "n1");
  api_.Put(kNodes, node.SetPath({"status", "conditions"},
                                json::List({json::Obj({{"type", "Ready"}, {"status", "False"}})})));
  Renew();
  loop_.RunFor(milliseconds(100));
  ASSERT_EQ(Taints(), 2u);
  EXPECT_EQ(Get(kNodes, "", "n1")["spec"]["taints"].At(1)["key"].AsString(), kNotReadyTaint);
}

TEST_F(NodeLifecycleTest, CordonedNodesHaveATaint) {
  Put(kNodes,
      "{metadata: {name: n1}, spec: {unschedulable: true}, status: {conditions: [{type: "
      "NetworkUnavailable, status: 'True'}, {type: Ready, status: 'True'}]}}");
  Start(std::make_unique<NodeLifecycleController>());
  ASSERT_EQ(Taints(), 2u);
  EXPECT_EQ(Get(kNodes, "", "n1")["spec"]["taints"].At(0)["key"].AsString(),
            kNetworkUnavailableTaint);
  EXPECT_EQ(Get(kNodes, "", "n1")["spec"]["taints"].At(1)["key"].AsString(),
            "node.kubernetes.io/unschedulable");
  api_.Put(kNodes, Get(kNodes, "", "n1").RemovePath({"spec", "unschedulable"}));
  Settle();
  EXPECT_EQ(Taints(), 1u);
}

}  // namespace
}  // namespace muster::controllers
