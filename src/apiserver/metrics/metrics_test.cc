#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apiserver/apiserver_testing.h"
#include "apiserver/metrics/node_stats.h"
#include "apiserver/node_proxy.h"

namespace muster::apiserver {
namespace {

constexpr const char* kPods = "/apis/metrics.k8s.io/v1beta1/pods";
constexpr const char* kNodes = "/apis/metrics.k8s.io/v1beta1/nodes";

// Nodes whose agents answer when the test says so.
class FakeNodes : public NodeProxy {
 public:
  std::unique_ptr<NodeStream> Stream(const NodeEndpoint& node, net::Request request,
                                     NodeStreamCallbacks callbacks) override {
    targets.push_back(node.node + request.target);
    open[node.node] = std::move(callbacks);
    return std::make_unique<NodeStream>();
  }
  void Upgrade(const NodeEndpoint&, net::Request, Function<void(Result<NodeUpgrade>)>) override {}
  void Answer(const std::string& node, int status, const std::string& body) {
    NodeStreamCallbacks callbacks = std::move(open.at(node));
    open.erase(node);
    callbacks.on_head(status, {});
    callbacks.on_data(body);
    callbacks.on_end(Status::Ok());
  }

  std::vector<std::string> targets;
  std::map<std::string, NodeStreamCallbacks> open;
};

std::string Measured(int64_t nano, int64_t bytes) {
  return fmt::format(
      R"("cpu":{{"time":"2026-01-01T00:00:00Z","usageNanoCores":{},"windowSeconds":15}},)"
      R"("memory":{{"workingSetBytes":{}}})",
      nano, bytes);
}

std::string Summary(const std::string& pod) {
  return R"({"node":{"nodeName":"n1",)" + Measured(2'000'000'000, 4096) +
         R"(},"pods":[{"podRef":{"namespace":"default","name":")" + pod +
         R"("},"containers":[{"name":"a",)" + Measured(250'000'000, 1048576) + R"(},{"name":"b",)" +
         Measured(1, 1024) + "}]}]}";
}

class MetricsTest : public testing::Test {
 protected:
  MetricsTest() : test_(Options()) {}

  ServerOptions Options() {
    ServerOptions options;
    options.node_proxy = &nodes_;
    return options;
  }
  void AddNode(const std::string& name, const std::string& labels = "{}") {
    const auto writer =
        test_.Send("POST", "/api/v1/nodes",
                   R"({"metadata":{"name":")" + name + R"(","labels":)" + labels +
                       R"(},"status":{"addresses":[{"type":"InternalIP","address":"10.1.1.1"}],
                "daemonEndpoints":{"kubeletEndpoint":{"Port":10250}}}})");
    ASSERT_EQ(writer->status, 201) << writer->body;
  }
  void AddPod(const std::string& name, const std::string& node, const std::string& more = "",
              const std::string& phase = "Running") {
    auto writer = test_.Send("POST", "/api/v1/namespaces/default/pods",
                             R"({"metadata":{"name":")" + name + R"(","labels":{"app":")" + name +
                                 "\"}" + more + R"(},"spec":{"nodeName":")" + node +
                                 R"(","containers":[{"name":"a","image":"i","resources":
                {"requests":{"cpu":"1","memory":"64Mi"}}}]}})");
    ASSERT_EQ(writer->status, 201) << writer->body;
    net::Headers headers;
    headers.Add("Content-Type", "application/merge-patch+json");
    writer = test_.Send("PATCH", "/api/v1/namespaces/default/pods/" + name + "/status",
                        R"({"status":{"phase":")" + phase + "\"}}", headers);
    ASSERT_EQ(writer->status, 200) << writer->body;
  }
  json::Value Get(const std::string& target) {
    const auto writer = test_.Send("GET", target);
    EXPECT_EQ(writer->status, 200) << writer->body;
    return TestServer::Json(*writer);
  }

  FakeNodes nodes_;
  TestServer test_;
};

TEST_F(MetricsTest, AreWhatTheAgentSays) {
  AddNode("n1");
  AddPod("p", "n1");
  const auto writer = test_.Send("GET", kPods);
  EXPECT_FALSE(writer->ended) << "the node has not answered";
  EXPECT_EQ(nodes_.targets, std::vector<std::string>{"n1/stats/summary"});
  nodes_.Answer("n1", 200, Summary("p"));
  test_.loop.RunReady();
  const json::Value list = TestServer::Json(*writer);
  EXPECT_EQ(list["kind"].AsString(), "PodMetricsList");
  EXPECT_EQ(list["apiVersion"].AsString(), "metrics.k8s.io/v1beta1");
  ASSERT_EQ(list["items"].size(), 1u);
  const json::Value& pod = list["items"].At(0);
  EXPECT_EQ(pod["metadata"]["name"].AsString(), "p");
  EXPECT_EQ(pod["metadata"]["namespace"].AsString(), "default");
  EXPECT_EQ(pod["metadata"]["labels"]["app"].AsString(), "p");
  EXPECT_FALSE(pod["metadata"].Has("resourceVersion"));
  EXPECT_EQ(pod["timestamp"].AsString(), "2026-01-01T00:00:00Z");
  EXPECT_EQ(pod["window"].AsString(), "15s");
  EXPECT_EQ(pod["containers"].At(0)["usage"]["cpu"].AsString(), "250m");
  EXPECT_EQ(pod["containers"].At(0)["usage"]["memory"].AsString(), "1Mi");
  EXPECT_EQ(pod["containers"].At(1)["usage"]["cpu"].AsString(), "1n");
  // The answer is good for a while, for every question about the node.
  const json::Value node = Get(std::string(kNodes) + "/n1");
  EXPECT_EQ(node["kind"].AsString(), "NodeMetrics");
  EXPECT_EQ(node["usage"]["cpu"].AsString(), "2");
  EXPECT_EQ(node["usage"]["memory"].AsString(), "4Ki");
  EXPECT_EQ(nodes_.targets.size(), 1u);
  test_.loop.RunFor(kStatsAge);
  test_.Send("GET", kPods);
  EXPECT_EQ(nodes_.targets.size(), 2u);
}

TEST_F(MetricsTest, SelectorsMeanTheObjectsThatAreMeasured) {
  AddNode("n1");
  AddNode("n2");
  AddPod("p", "n1");
  AddPod("q", "n2");
  AddPod("done", "n2", "", "Succeeded");
  const auto writer = test_.Send(
      "GET", "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods?labelSelector=app%3Dp");
  EXPECT_EQ(nodes_.targets, std::vector<std::string>{"n1/stats/summary"}) << "only the pod's node";
  nodes_.Answer("n1", 200, Summary("p"));
  test_.loop.RunReady();
  EXPECT_EQ(TestServer::Json(*writer)["items"].size(), 1u);
  EXPECT_EQ(Get(std::string(kPods) + "?labelSelector=app%3Ddone")["items"].size(), 0u);
  EXPECT_EQ(Get(std::string(kPods) + "?fieldSelector=metadata.name%3Dp")["items"].size(), 1u);
  EXPECT_EQ(Get("/apis/metrics.k8s.io/v1beta1/namespaces/other/pods")["items"].size(), 0u);
}

TEST_F(MetricsTest, ANodeThatDoesNotAnswerHoldsNobodyUp) {
  AddNode("n1");
  AddPod("p", "n1");
  const auto writer = test_.Send("GET", "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods/p");
  test_.loop.RunFor(kStatsPatience);
  EXPECT_EQ(writer->status, 404);
  EXPECT_EQ(TestServer::Json(*writer)["message"].AsString(), "pods.metrics.k8s.io \"p\" not found");
  // It is asked again, and its answer to the first question is not taken for one.
  test_.loop.RunFor(kStatsAge);
  const auto again = test_.Send("GET", kPods);
  EXPECT_EQ(nodes_.targets.size(), 2u);
  nodes_.Answer("n1", 500, "no");
  test_.loop.RunReady();
  EXPECT_EQ(TestServer::Json(*again)["items"].size(), 0u);
}

TEST_F(MetricsTest, ASilentNodeIsGivenUpBesideOneThatSpeaks) {
  AddNode("n1");
  AddNode("n2");
  const auto writer = test_.Send("GET", kNodes);
  nodes_.Answer("n1", 200, Summary("p"));
  test_.loop.RunReady();
  EXPECT_FALSE(writer->ended);
  test_.loop.RunFor(kStatsPatience);
  EXPECT_EQ(TestServer::Json(*writer)["items"].size(), 1u);
}

TEST_F(MetricsTest, AtMostSoManyNodesAreAskedAtOnce) {
  for (size_t i = 0; i < kMaxStatsRequests + 2; ++i) AddNode(fmt::format("n{}", i));
  const auto writer = test_.Send("GET", kNodes);
  EXPECT_EQ(nodes_.targets.size(), kMaxStatsRequests);
  while (!nodes_.open.empty()) {
    nodes_.Answer(nodes_.open.begin()->first, 200, Summary("p"));
    test_.loop.RunReady();
  }
  EXPECT_EQ(TestServer::Json(*writer)["items"].size(), kMaxStatsRequests + 2);
}

TEST_F(MetricsTest, WhatANodeSaidIsForgottenWhenNobodyAsks) {
  AddNode("n1");
  AddNode("n2");
  test_.Send("GET", std::string(kNodes) + "/n1");
  nodes_.Answer("n1", 200, Summary("p"));
  test_.loop.RunFor(kStatsMemory + seconds(1));
  test_.Send("GET", std::string(kNodes) + "/n2");
  nodes_.Answer("n2", 500, "");
  test_.loop.RunReady();
  test_.Send("GET", std::string(kNodes) + "/n1");
  EXPECT_EQ(nodes_.targets.back(), "n1/stats/summary");
}

TEST_F(MetricsTest, SimulatedNodesSayWhatAnnotationsSay) {
  AddNode("s1", R"({"muster.dev/simulated":"true"})");
  AddPod(
      "said", "s1",
      R"(,"annotations":{"muster.dev/simulated-cpu":"1500m","muster.dev/simulated-memory":"1Gi"})");
  AddPod("half", "s1");
  AddPod("odd", "s1", R"(,"annotations":{"muster.dev/simulated-cpu":"much"})");
  const json::Value list = Get(kPods);
  ASSERT_EQ(list["items"].size(), 3u);
  const auto usage = [&](size_t i) { return list["items"].At(i)["containers"].At(0)["usage"]; };
  EXPECT_EQ(usage(0)["cpu"].AsString(), "500m");
  EXPECT_EQ(usage(0)["memory"].AsString(), "32Mi");
  EXPECT_EQ(usage(1)["cpu"].AsString(), "500m");
  EXPECT_EQ(usage(2)["cpu"].AsString(), "1500m");
  const json::Value node = Get(std::string(kNodes) + "/s1");
  EXPECT_EQ(node["usage"]["cpu"].AsString(), "2500m");
  EXPECT_EQ(node["usage"]["memory"].AsString(), "1088Mi");
  EXPECT_TRUE(nodes_.targets.empty());
}

TEST_F(MetricsTest, AreReadOnlyAndHaveATable) {
  AddNode("s1", R"({"muster.dev/simulated":"true"})");
  EXPECT_EQ(test_.Send("POST", kNodes, R"({"metadata":{"name":"x"}})")->status, 405);
  EXPECT_EQ(test_.Send("DELETE", std::string(kNodes) + "/s1")->status, 405);
  EXPECT_EQ(test_.Send("GET", std::string(kNodes) + "?watch=true")->status, 405);
  EXPECT_EQ(test_.Send("GET", std::string(kNodes) + "/nobody")->status, 404);
  const json::Value resources = Get("/apis/metrics.k8s.io/v1beta1");
  EXPECT_EQ(resources["resources"].At(0)["verbs"], json::Strings({"get", "list"}));
  net::Headers headers;
  headers.Add("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
  const auto table = test_.Send("GET", kNodes, "", headers);
  EXPECT_EQ(TestServer::Json(*table)["rows"].At(0)["cells"], json::List({"s1", "0", "0", "15s"}));
}

TEST(ParseSummary, LeavesOutWhatIsNotAsExpected) {
  const NodeSample sample = ParseSummary(*json::Parse(
      R"({"node":{"cpu":{"time":"never","usageNanoCores":1},"memory":{"workingSetBytes":1}},
          "pods":[7,{"podRef":{"name":"p","namespace":"d"},"containers":[{"name":"c"}]},
          {"podRef":{"name":"q","namespace":"d"},"containers":[{"name":"c","cpu":
          {"time":"2026-01-01T00:00:00Z","usageNanoCores":-5},
          "memory":{"workingSetBytes":1}}]}]})"));
  EXPECT_FALSE(sample.node.has_value());
  EXPECT_TRUE(sample.pods.empty());
}

}  // namespace
}  // namespace muster::apiserver
