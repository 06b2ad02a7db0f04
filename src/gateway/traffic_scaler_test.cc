#include "gateway/traffic_scaler.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "client/fake_api.h"
#include "client/in_process_transport.h"
#include "gateway/route_builder.h"
#include "json/parse.h"
#include "loop/sim_loop.h"

namespace muster::gateway {
namespace {

constexpr char kServices[] = "/apis/serving.kserve.io/v1beta1/inferenceservices";
constexpr char kDeployments[] = "/apis/apps/v1/deployments";
constexpr char kSlices[] = "/apis/discovery.k8s.io/v1/endpointslices";

json::Value Yaml(std::string_view text) {
  auto documents = json::ParseYaml(text);
  CHECK(documents.has_value() && documents->size() == 1);
  return (*documents)[0];
}

// An InferenceService on a FakeApi, its routes, and who scales it.
class TrafficScalerTest : public testing::Test {
 protected:
  TrafficScalerTest() {
    api_.Put("/api/v1/services",
             Yaml("{metadata: {name: iris, namespace: ml}, spec: {clusterIP: 10.43.0.7}}"));
    Deployment("iris-predictor", 1);
    Service("minReplicas: 0", "[{percent: 100, latestRevision: true}]");
    informers_.Start();
    loop_.RunFor(seconds(1));
    Publish();
  }

  void Deployment(const std::string& name, int replicas) {
    api_.Put(kDeployments,
             Yaml(fmt::format("{{metadata: {{name: {}, namespace: ml}}, spec: {{replicas: {}}}}}",
                              name, replicas)));
  }
  void Service(std::string_view predictor, std::string_view traffic) {
    api_.Put(kServices, Yaml(fmt::format(R"(
metadata:
  name: iris
  namespace: ml
  annotations: {{autoscaling.knative.dev/window: 6s}}
spec: {{predictor: {{{}}}}}
status: {{components: {{predictor: {{latestReadyRevision: r, traffic: {}}}}}}}
)",
                                         predictor, traffic)));
  }
  void Slice(const std::string& service, std::string_view endpoints) {
    api_.Put(kSlices, Yaml(fmt::format(R"(
metadata: {{name: {0}-x, namespace: ml, labels: {{kubernetes.io/service-name: {0}}}}}
ports: [{{port: 8080}}]
endpoints: {1}
)",
                                       service, endpoints)));
  }
  void Publish() {
    loop_.RunFor(milliseconds(10));
    table_ = BuildRoutes(sources_, counters_, "10.42.0.1");
    scaler_.SetTable(table_);
  }
  int64_t Replicas(const std::string& name = "iris-predictor") {
    return (*api_.Find(kDeployments, "ml", name))["spec"]["replicas"].AsInt();
  }
  TrafficCounters& Counters() { return *counters_.at({"ml", "iris-predictor"}); }

  SimLoop loop_;
  client::FakeApi api_{loop_};
  client::InProcessTransport transport_{loop_, api_, {"", "gateway", {}}};
  client::ApiClient client_{loop_, transport_, "gateway"};
  client::InformerSet informers_{client_};
  RouteSources sources_ = WatchRouteSources(informers_);
  CounterMap counters_;
  std::shared_ptr<const RouteTable> table_;
  TrafficScaler scaler_{loop_, client_, sources_};
};

TEST_F(TrafficScalerTest, SleepsAfterItsWindowAndWakesAtOnce) {
  loop_.RunFor(seconds(5));
  EXPECT_EQ(Replicas(), 1);
  loop_.RunFor(seconds(4));
  EXPECT_EQ(Replicas(), 0);
  Publish();
  const auto route = table_->FindRoute({"ml", "iris"});
  EXPECT_TRUE(route->groups[0].asleep);
  Counters().held = 1;
  ++Counters().requests;
  scaler_.Wake({"ml", "iris"});
  loop_.RunFor(milliseconds(50));
  EXPECT_EQ(Replicas(), 1);
}

TEST_F(TrafficScalerTest, WhatWasNeverReadyDoesNotSleep) {
  api_.Put(kServices, Yaml(R"(
metadata: {name: iris, namespace: ml, annotations: {autoscaling.knative.dev/window: 6s}}
spec: {predictor: {minReplicas: 0}}
)"));
  loop_.RunFor(seconds(20));
  EXPECT_EQ(Replicas(), 1);
}

TEST_F(TrafficScalerTest, FollowsTheRateAndLeavesOthersAlone) {
  Service("maxReplicas: 5, scaleMetric: rps, scaleTarget: 10",
          "[{percent: 100, latestRevision: true}]");
  Publish();
  for (int second = 0; second < 10; ++second) {
    Counters().requests += 35;
    loop_.RunFor(seconds(1));
  }
  EXPECT_EQ(Replicas(), 4);
  // Its number is somebody else's business now.
  Service("maxReplicas: 5", "[{percent: 100, latestRevision: true}]");
  Publish();
  loop_.RunFor(seconds(20));
  EXPECT_EQ(Replicas(), 4);
}

TEST_F(TrafficScalerTest, ARefusedWriteIsMadeAgain) {
  int refused = 0;
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (request.method != "PATCH" || ++refused > 2) return true;
    net::Response response;
    response.status = 500;
    writer->Send(std::move(response));
    return false;
  };
  loop_.RunFor(seconds(12));
  EXPECT_EQ(Replicas(), 0);
  EXPECT_EQ(refused, 3);
}

TEST_F(TrafficScalerTest, RoutesHaveTheWeightsOfTheStatusAndTheReadyPods) {
  Service("minReplicas: 1, timeout: 7, containerConcurrency: 2",
          "[{percent: 10, latestRevision: true}, {percent: 90, tag: prev}]");
  Deployment("iris-predictor-canary", 1);
  Slice("iris-predictor",
        "[{addresses: [10.42.0.3]}, {addresses: [10.42.0.4], conditions: "
        "{ready: false}}]");
  Slice("iris-predictor-canary", "[{addresses: [10.42.0.5], conditions: {ready: true}}]");
  Publish();
  const auto route = table_->FindRoute(*table_->Resolve("10.43.0.7", ""));
  ASSERT_EQ(route->groups.size(), 2u);
  EXPECT_EQ(route->groups[0].deployment, "iris-predictor-canary");
  EXPECT_EQ(route->groups[0].weight, 10);
  EXPECT_EQ(route->groups[0].ready, (std::vector<Backend>{{"10.42.0.5", 8080}}));
  EXPECT_EQ(route->groups[1].weight, 90);
  EXPECT_EQ(route->groups[1].ready, (std::vector<Backend>{{"10.42.0.3", 8080}}));
  EXPECT_FALSE(route->groups[1].asleep);
  EXPECT_EQ(route->timeout, seconds(7));
  EXPECT_EQ(route->most_at_once, 2);
  // Stopped: nobody answers.
  const json::Value* object = api_.Find(kServices, "ml", "iris");
  api_.Put(kServices,
           object->SetPath({"metadata", "annotations", "serving.kserve.io/stop"}, "true"));
  Publish();
  EXPECT_TRUE(table_->empty());
}

}  // namespace
}  // namespace muster::gateway
