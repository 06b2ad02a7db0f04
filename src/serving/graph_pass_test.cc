#include "serving/graph_pass.h"

#include <gtest/gtest.h>

#include "schema/conditions.h"
#include "serving/test_services.h"

namespace muster::serving {
namespace {

using json::Value;

const Time kNow = *ParseTime("2026-01-02T03:04:05Z");
const GatewayAddress kGateway{"10.42.0.1", 8012};

Value Graph() {
  return Yaml(R"(
apiVersion: serving.kserve.io/v1alpha1
kind: InferenceGraph
metadata: {name: chain, namespace: ml, uid: g1, generation: 1}
spec:
  nodes:
    root: {routerType: Sequence, steps: [{serviceName: a}, {nodeName: n}]}
    n: {routerType: Switch, steps: [{serviceName: b, condition: x}, {serviceUrl: "http://c/"}]}
)");
}

Value StatusOf(const client::Reconciled& out) {
  for (const client::Write& write : out.writes) {
    if (write.target.subresource == "status") return write.body["status"];
  }
  return {};
}

std::string ReadyIn(const client::Reconciled& out) {
  const Value status = StatusOf(out);
  if (status.IsNull()) return "";
  const Value& ready = schema::FindCondition(status["conditions"], "Ready");
  return ready["status"].Str() + " " + ready["message"].Str();
}

Value Owned(Value object) { return object.SetPath({"metadata", "uid"}, "x"); }

TEST(GraphPass, LeadsItsServiceToTheGatewayAndIsReadyWhenItsServicesAre) {
  EXPECT_EQ(ServicesOf(Graph()), (std::set<std::string>{"a", "b"}));
  GraphChildren children;
  client::Reconciled out = ReconcileGraph(Graph(), children, kGateway, kNow);
  EXPECT_EQ(out.writes.size(), 3u);
  children.service = Owned(MakeGatewayService(Graph()));
  children.gateway_slice = Owned(MakeGatewaySlice(Graph(), kGateway));
  children.not_ready = {"b"};
  EXPECT_EQ(ReadyIn(ReconcileGraph(Graph(), children, kGateway, kNow)), "False not ready: b");
  children.missing = {"a"};
  EXPECT_EQ(ReadyIn(ReconcileGraph(Graph(), children, kGateway, kNow)),
            "False there is no InferenceService a");
  children.missing.clear();
  children.not_ready.clear();
  EXPECT_EQ(ReadyIn(ReconcileGraph(Graph(), children, kGateway, kNow)), "True ");
  // The gateway has moved.
  out = ReconcileGraph(Graph(), children, {"10.42.0.1", 9000}, kNow);
  EXPECT_EQ(out.writes.back().body["ports"].At(0)["port"].AsInt(), 9000);
}

TEST(GraphPass, AForeignUrlIsSaidInItsConditions) {
  EXPECT_EQ(UrlsOf(Graph()), (std::set<std::string>{"http://c/"}));
  GraphChildren children;
  children.missing = {"a"};
  children.url_fault = "serviceUrl http://c/: c is no InferenceService";
  const client::Reconciled out = ReconcileGraph(Graph(), children, kGateway, kNow);
  EXPECT_EQ(ReadyIn(out), "False serviceUrl http://c/: c is no InferenceService");
}

TEST(GraphPass, AHostThatAnOlderOneHasIsSaid) {
  GraphChildren children;
  children.host_owner = "InferenceService c/a-b";
  const client::Reconciled out = ReconcileGraph(Graph(), children, kGateway, kNow);
  EXPECT_EQ(StatusOf(out)["url"].AsString(), "http://chain.ml.example.com");
  ASSERT_EQ(out.events.size(), 1u);
  EXPECT_EQ(out.events[0].reason, "HostTaken");
  EXPECT_EQ(out.events[0].message,
            "chain-ml.example.com leads to InferenceService c/a-b, which is older; this one is "
            "reached as chain.ml.example.com");
}

TEST(GraphPass, WithoutAListenerItIsNotReadyAndLooksAgain) {
  GraphChildren children;
  const GatewayAddress broken{"10.42.0.1", 8012, std::make_shared<std::string>("in use")};
  const client::Reconciled out = ReconcileGraph(Graph(), children, broken, kNow);
  EXPECT_EQ(ReadyIn(out), "False in use");
  EXPECT_EQ(out.look_again_at, kNow + kGatewayLookPeriod);
}

// What no request could pass is said before one comes.
TEST(GraphPass, IsNotReadyWithAConditionThatIsNotUnderstood) {
  GraphChildren children;
  children.service = Owned(MakeGatewayService(Graph()));
  children.gateway_slice = Owned(MakeGatewaySlice(Graph(), kGateway));
  const Value graph = Yaml(R"(
kind: InferenceGraph
metadata: {name: chain, namespace: ml, uid: g1, generation: 1}
spec: {nodes: {root: {routerType: Switch, steps: [{serviceName: a, condition: "[["}]}}}
)");
  EXPECT_EQ(ReadyIn(ReconcileGraph(graph, children, kGateway, kNow)).substr(0, 22),
            "False condition \"[[\": ");
}

TEST(GraphPass, DoesNotTakeTheNameOfAnother) {
  GraphChildren children;
  children.named_as_a_service = true;
  const client::Reconciled out = ReconcileGraph(Graph(), children, kGateway, kNow);
  EXPECT_EQ(out.writes.size(), 1u);
  EXPECT_EQ(ReadyIn(out).substr(0, 5), "False");
  EXPECT_EQ(ReadyIn(ReconcileGraph(Graph(), {}, {}, kNow)).substr(0, 5), "False");
  // What it had, it leaves; what is of others stays.
  children.service = Owned(MakeGatewayService(Graph()));
  const Value stranger = Yaml("{metadata: {name: chain-gateway, namespace: ml, uid: y}}");
  children.gateway_slice = stranger;
  const client::Reconciled left = ReconcileGraph(Graph(), children, kGateway, kNow);
  ASSERT_EQ(left.writes.size(), 2u);
  EXPECT_EQ(left.writes[1].verb, client::Write::Verb::kDelete);
  EXPECT_EQ(left.writes[1].target.resource.plural, "services");
}

}  // namespace
}  // namespace muster::serving
