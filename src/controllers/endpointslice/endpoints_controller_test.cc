#include "controllers/endpointslice/endpoints_controller.h"

#include "controllers/controller_test_base.h"
#include "json/write.h"

namespace muster::controllers {
namespace {

constexpr char kReadyStatus[] =
    "phase: Running, podIP: 10.42.0.5, conditions: [{type: Ready, status: 'True'}]";

json::Value WebService(std::string_view extra = "clusterIP: 10.43.0.9") {
  return Yaml(fmt::format(R"(
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: d, uid: s1, labels: {{team: a}}}}
spec: {{selector: {{app: web}}, ports: [{{name: http, port: 80, targetPort: 8080}}], {}}}
)",
                          extra));
}

json::Value WebPod(const std::string& name, std::string_view status = kReadyStatus,
                   std::string_view metadata = "") {
  return Yaml(fmt::format(R"(
apiVersion: v1
kind: Pod
metadata: {{name: {}, namespace: d, uid: u-{}, labels: {{app: web}} {}}}
spec: {{nodeName: n1, containers: [{{ports: [{{name: api, containerPort: 9000}}]}}]}}
status: {{{}}}
)",
                          name, name, metadata, status));
}

json::Value Numbered(int number, bool ready = true) {
  const json::Value pod =
      WebPod(fmt::format("p{}", number), ready ? kReadyStatus : "phase: Running");
  return pod.SetPath({"status", "podIP"}, fmt::format("10.42.{}.{}", number / 250, number % 250));
}

TEST(MakeEndpoints, DescribesEachPod) {
  const json::Value pod =
      WebPod("a").SetPath({"spec", "hostname"}, "h").SetPath({"spec", "subdomain"}, "web");
  const json::Value endpoints = MakeEndpoints(WebService(), {pod});
  EXPECT_EQ(endpoints["metadata"], Yaml(R"({name: web, namespace: d,
    labels: {team: a, endpoints.kubernetes.io/managed-by: endpoint-controller}})"));
  EXPECT_EQ(json::Write(endpoints["subsets"]), json::Write(Yaml(R"(
- addresses:
  - ip: 10.42.0.5
    hostname: h
    nodeName: n1
    targetRef: {kind: Pod, namespace: d, name: a, uid: u-a}
  ports: [{name: http, port: 8080, protocol: TCP}]
)")));
}

// Where a pod's address is: "ready", "other" or "".
std::string PlaceOf(const json::Value& service, const json::Value& pod) {
  const json::Value endpoints = MakeEndpoints(service, {pod});
  if (endpoints["subsets"].empty()) return "";
  const json::Value& subset = endpoints["subsets"].At(0);
  if (!subset["addresses"].empty()) return "ready";
  return subset["notReadyAddresses"].empty() ? "empty" : "other";
}

TEST(MakeEndpoints, PlacesTable) {
  const std::string going = ", deletionTimestamp: '2026-01-01T00:00:00Z'";
  const json::Value service = WebService();
  const json::Value publishing = WebService("publishNotReadyAddresses: true");
  EXPECT_EQ(PlaceOf(service, WebPod("a")), "ready");
  EXPECT_EQ(PlaceOf(service, WebPod("a", "phase: Running, podIP: 10.42.0.5")), "other");
  EXPECT_EQ(PlaceOf(publishing, WebPod("a", "phase: Running, podIP: 10.42.0.5")), "ready");
  EXPECT_EQ(PlaceOf(service, WebPod("a", kReadyStatus, going)), "");
  EXPECT_EQ(PlaceOf(publishing, WebPod("a", kReadyStatus, going)), "ready");
  EXPECT_EQ(PlaceOf(service, WebPod("a", "phase: Pending")), "");
  EXPECT_EQ(PlaceOf(publishing, WebPod("a", "phase: Failed, podIP: 10.42.0.5")), "");
}

TEST(MakeEndpoints, ASubsetForEachSetOfPorts) {
  const json::Value service =
      WebService().SetPath({"spec", "ports"}, Yaml("[{name: x, port: 80, targetPort: api}]"));
  const json::Value other = WebPod("b").SetPath(
      {"spec", "containers"}, Yaml("[{ports: [{name: api, containerPort: 9001}]}]"));
  const json::Value without = WebPod("c").SetPath({"spec", "containers"}, Yaml("[{}]"));
  const json::Value subsets =
      MakeEndpoints(service, {WebPod("a"), other, without, WebPod("d")})["subsets"];
  ASSERT_EQ(subsets.size(), 2u) << json::Write(subsets);
  EXPECT_EQ(subsets.At(0)["ports"].At(0)["port"].AsInt(), 9000);
  EXPECT_EQ(subsets.At(0)["addresses"].size(), 2u) << "one address of two pods";
  EXPECT_EQ(subsets.At(1)["ports"].At(0)["port"].AsInt(), 9001);
}

TEST(MakeEndpoints, OnlyAHeadlessServiceNeedsNoPorts) {
  const auto without_ports = [](std::string_view extra) {
    return MakeEndpoints(WebService(extra).RemovePath({"spec", "ports"}), {WebPod("a")});
  };
  const json::Value headless = without_ports("clusterIP: None");
  EXPECT_EQ(headless["subsets"].At(0)["addresses"].size(), 1u);
  EXPECT_FALSE(headless["subsets"].At(0).Has("ports"));
  EXPECT_TRUE(headless["metadata"]["labels"].Has("service.kubernetes.io/headless"));
  EXPECT_FALSE(without_ports("clusterIP: 10.43.0.9").Has("subsets"));
}

TEST(MakeEndpoints, AThousandAddressesAndNoMore) {
  const auto count = [](const json::Value& endpoints, const char* list) {
    size_t sum = 0;
    for (const json::Value& subset : endpoints["subsets"].items()) sum += subset[list].size();
    return sum;
  };
  const auto truncated = [](const json::Value& endpoints) {
    return endpoints["metadata"]["annotations"]["endpoints.kubernetes.io/over-capacity"].Str();
  };
  std::vector<json::Value> pods;
  for (int i = 0; i < 1000; ++i) pods.push_back(Numbered(i, i >= 10));
  json::Value endpoints = MakeEndpoints(WebService(), pods);
  EXPECT_EQ(count(endpoints, "addresses"), 990u);
  EXPECT_EQ(count(endpoints, "notReadyAddresses"), 10u);
  EXPECT_EQ(truncated(endpoints), "");
  for (int i = 1000; i < 1005; ++i) pods.push_back(Numbered(i));
  endpoints = MakeEndpoints(WebService(), pods);
  EXPECT_EQ(count(endpoints, "addresses"), 995u) << "those that can take work stay";
  EXPECT_EQ(count(endpoints, "notReadyAddresses"), 5u);
  EXPECT_EQ(truncated(endpoints), "truncated");
  for (int i = 1005; i < 1100; ++i) pods.push_back(Numbered(i));
  endpoints = MakeEndpoints(WebService(), pods);
  EXPECT_EQ(count(endpoints, "addresses"), 1000u);
  EXPECT_EQ(count(endpoints, "notReadyAddresses"), 0u);
}

class EndpointsTest : public ControllerTest {
 protected:
  const json::Value& Web() { return Get(kEndpoints, "d", "web"); }
};

TEST_F(EndpointsTest, FollowsServicesAndPods) {
  api_.Put(kServices, WebService());
  Start(std::make_unique<EndpointsController>());
  EXPECT_FALSE(Web().IsNull());
  EXPECT_FALSE(Web().Has("subsets"));
  api_.Put(kPods, WebPod("a"));
  Settle();
  EXPECT_EQ(Web()["subsets"].At(0)["addresses"].size(), 1u);
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
  api_.Put(kPods, WebPod("a", "phase: Running, podIP: 10.42.0.5"));
  Settle();
  EXPECT_EQ(Web()["subsets"].At(0)["notReadyAddresses"].size(), 1u);
  api_.Remove(kPods, "d", "a");
  Settle();
  EXPECT_FALSE(Web().Has("subsets"));
  api_.Remove(kServices, "d", "web");
  Settle();
  EXPECT_TRUE(Web().IsNull());
}

TEST_F(EndpointsTest, RepairsItsOwnAndLeavesTheAnnotationsOfOthers) {
  api_.Put(kServices, WebService());
  Start(std::make_unique<EndpointsController>());
  api_.Put(kEndpoints, Web()
                           .SetPath({"metadata", "annotations", "mine"}, "x")
                           .SetPath({"metadata", "labels"}, Yaml("{a: b}"))
                           .Set("subsets", Yaml("[{addresses: [{ip: 10.9.9.9}]}]")));
  Settle();
  EXPECT_FALSE(Web().Has("subsets"));
  EXPECT_EQ(Web()["metadata"]["annotations"]["mine"].AsString(), "x");
  EXPECT_EQ(Web()["metadata"]["labels"]["team"].AsString(), "a");
  api_.Remove(kEndpoints, "d", "web");
  Settle();
  EXPECT_FALSE(Web().IsNull());
}

TEST_F(EndpointsTest, LeavesAloneWhatOthersWrite) {
  const json::Value theirs = Yaml(R"(
apiVersion: v1
kind: Endpoints
metadata: {name: web, namespace: d}
subsets: [{addresses: [{ip: 10.9.9.9}]}]
)");
  api_.Put(kEndpoints, theirs);
  Start(std::make_unique<EndpointsController>());
  for (const char* service : {"externalName: x.org, type: ExternalName", "selector: {}"}) {
    json::Value one = WebService(service);
    if (std::string_view(service).starts_with("selector"))
      one = WebService().RemovePath({"spec", "selector"});
    api_.Put(kServices, one);
    Settle();
    EXPECT_EQ(Web()["subsets"], theirs["subsets"]) << service;
    api_.Remove(kServices, "d", "web");
    Settle();
    EXPECT_EQ(Web()["subsets"], theirs["subsets"]) << "they are not ours to delete";
  }
}

}  // namespace
}  // namespace muster::controllers
