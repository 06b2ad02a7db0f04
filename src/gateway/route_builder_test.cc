#include "gateway/route_builder.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "client/fake_api.h"
#include "client/in_process_transport.h"
#include "json/parse.h"
#include "loop/sim_loop.h"

namespace muster::gateway {
namespace {

constexpr char kServices[] = "/apis/serving.kserve.io/v1beta1/inferenceservices";
constexpr char kGraphs[] = "/apis/serving.kserve.io/v1alpha1/inferencegraphs";

json::Value Yaml(std::string_view text) {
  auto documents = json::ParseYaml(text);
  CHECK(documents.has_value() && documents->size() == 1);
  return (*documents)[0];
}

class RouteBuilderTest : public testing::Test {
 protected:
  RouteBuilderTest() { informers_.Start(); }

  void Put(const char* path, std::string_view ns, std::string_view name, int second) {
    const char* kind = path == kGraphs ? "InferenceGraph" : "InferenceService";
    api_.Put(path,
             Yaml(fmt::format("{{kind: {}, metadata: {{name: {}, namespace: {}, creationTimestamp: "
                              "'2026-01-02T03:04:{:02}Z'}}, spec: {{predictor: {{}}}}}}",
                              kind, name, ns, second)));
  }
  void Slice(std::string_view type, std::string_view addresses) {
    const json::Value list = Yaml(addresses);
    json::Array endpoints;
    for (const json::Value& address : list.items())
      endpoints.push_back(json::Obj({{"addresses", json::List({address})}}));
    api_.Put("/apis/discovery.k8s.io/v1/endpointslices",
             Yaml(fmt::format("{{metadata: {{name: x, namespace: ml, labels: "
                              "{{kubernetes.io/service-name: iris-predictor}}}}, addressType: {}, "
                              "ports: [{{port: 8080}}]}}",
                              type))
                 .Set("endpoints", json::Value(std::move(endpoints))));
  }
  std::shared_ptr<const RouteTable> Table() {
    loop_.RunFor(seconds(1));
    return BuildRoutes(sources_, counters_, "10.42.0.1");
  }
  static std::string Resolved(const RouteTable& table, std::string_view host) {
    const client::ObjectKey* key = table.Resolve(host, "");
    return key == nullptr ? "" : key->ToString();
  }

  SimLoop loop_;
  client::FakeApi api_{loop_};
  client::InProcessTransport transport_{loop_, api_, {"", "gateway", {}}};
  client::ApiClient client_{loop_, transport_, "gateway"};
  client::InformerSet informers_{client_};
  RouteSources sources_ = WatchRouteSources(informers_);
  CounterMap counters_;
};

TEST_F(RouteBuilderTest, AHostThatSeveralWantLeadsToTheOldest) {
  // By their names the other one would be first.
  Put(kServices, "b-c", "a", 6);
  Put(kServices, "c", "a-b", 5);
  Put(kGraphs, "c", "chain", 7);
  auto table = Table();
  EXPECT_EQ(Resolved(*table, "a-b-c.example.com"), "c/a-b");
  EXPECT_EQ(Resolved(*table, "a.b-c.example.com"), "b-c/a");
  EXPECT_EQ(Resolved(*table, "chain-c.example.com"), "c/chain");
  api_.Remove(kServices, "c", "a-b");
  table = Table();
  EXPECT_EQ(Resolved(*table, "a-b-c.example.com"), "b-c/a");
  Put(kGraphs, "c", "a-b", 4);
  EXPECT_EQ(Resolved(*Table(), "a-b-c.example.com"), "c/a-b");
}

TEST_F(RouteBuilderTest, OfOneNameTheOlderHasTheService) {
  Table();  // what comes later is watched, and has its kind
  Put(kGraphs, "c", "x", 5);
  Put(kServices, "c", "x", 6);
  auto table = Table();
  EXPECT_EQ(Resolved(*table, "x-c.example.com"), "c/x");
  EXPECT_EQ(table->FindRoute({"c", "x"}), nullptr);
  Put(kServices, "c", "x", 4);
  EXPECT_NE(Table()->FindRoute({"c", "x"}), nullptr);
}

TEST_F(RouteBuilderTest, OnlyOrdinaryAddressesAreBackends) {
  Put(kServices, "ml", "iris", 1);
  Slice("IPv4",
        "[10.42.0.3, 127.0.0.1, 169.254.169.254, 0.0.0.0, 10.42.0.1, '::1', 'fe80::1', "
        "'::ffff:127.0.0.1', '::ffff:10.42.0.1', 010.42.0.3, 2130706433]");
  const std::vector<Backend> one = {{"10.42.0.3", 8080}};
  EXPECT_EQ(Table()->FindRoute({"ml", "iris"})->groups[0].ready, one);
  Slice("FQDN", "[localhost, metadata.internal, 10.42.0.3]");
  EXPECT_EQ(Table()->FindRoute({"ml", "iris"})->groups[0].ready, one);
}

}  // namespace
}  // namespace muster::gateway
