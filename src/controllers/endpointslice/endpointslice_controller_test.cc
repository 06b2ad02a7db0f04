#include "controllers/endpointslice/endpointslice_controller.h"

#include "controllers/controller_test_base.h"

namespace muster::controllers {
namespace {

json::Value Service(std::string_view extra = "clusterIP: None") {
  return Yaml(fmt::format(R"(
metadata: {{name: web, namespace: d, uid: s1, labels: {{team: a}}}}
spec: {{selector: {{app: web}}, ports: [{{name: http, port: 80, targetPort: 8080}}], {}}}
)",
                          extra));
}

json::Value Pod(const std::string& name, std::string_view status, std::string_view metadata = "") {
  return Yaml(fmt::format(R"(
apiVersion: v1
kind: Pod
metadata: {{name: {}, namespace: d, uid: u-{}, labels: {{app: web, more: x}} {}}}
spec: {{nodeName: n1, containers: [{{ports: [{{name: api, containerPort: 9000}}]}}]}}
status: {{{}}}
)",
                          name, name, metadata, status));
}

constexpr char kReady[] =
    "phase: Running, podIP: 10.42.0.5, conditions: [{type: Ready, status: 'True'}]";

TEST(MakeEndpointSlices, DescribesEachPod) {
  const auto slices = MakeEndpointSlices(Service(), {Pod("a", kReady)});
  ASSERT_EQ(slices.size(), 1u);
  EXPECT_EQ(slices[0]["endpoints"], Yaml(R"(
- addresses: [10.42.0.5]
  conditions: {ready: true, serving: true, terminating: false}
  nodeName: n1
  targetRef: {kind: Pod, namespace: d, name: a, uid: u-a}
)"));
  EXPECT_EQ(slices[0]["ports"], Yaml("[{name: http, port: 8080, protocol: TCP}]"));
  EXPECT_EQ(slices[0]["addressType"].AsString(), "IPv4");
  EXPECT_EQ(slices[0]["metadata"]["labels"], Yaml(R"({team: a, kubernetes.io/service-name: web,
    endpointslice.kubernetes.io/managed-by: endpointslice-controller.k8s.io,
    service.kubernetes.io/headless: ""})"));
  EXPECT_EQ(slices[0]["metadata"]["ownerReferences"].At(0)["uid"].AsString(), "s1");
}

TEST(MakeEndpointSlices, ConditionsTable) {
  const struct {
    const char* status;
    const char* metadata;
    const char* service;
    const char* conditions;  // "" : no endpoint
  } rows[] = {
      {kReady, "", "type: ClusterIP", "{ready: true, serving: true, terminating: false}"},
      {"phase: Running, podIP: 10.42.0.5", "", "type: ClusterIP",
       "{ready: false, serving: false, terminating: false}"},
      {"phase: Pending, podIP: 10.42.0.5", "", "publishNotReadyAddresses: true",
       "{ready: true, serving: false, terminating: false}"},
      {kReady, ", deletionTimestamp: '2026-01-01T00:00:00Z'", "type: ClusterIP",
       "{ready: false, serving: true, terminating: true}"},
      {"phase: Pending", "", "type: ClusterIP", ""},
      {"phase: Succeeded, podIP: 10.42.0.5", "", "type: ClusterIP", ""},
      {"phase: Failed, podIP: 10.42.0.5", "", "publishNotReadyAddresses: true", ""},
  };
  for (const auto& row : rows) {
    const auto slices =
        MakeEndpointSlices(Service(row.service), {Pod("a", row.status, row.metadata)});
    ASSERT_EQ(slices.size(), 1u);
    if (std::string_view(row.conditions).empty()) {
      EXPECT_TRUE(slices[0]["endpoints"].empty()) << row.status;
    } else {
      EXPECT_EQ(slices[0]["endpoints"].At(0)["conditions"], Yaml(row.conditions)) << row.status;
    }
  }
}

TEST(MakeEndpointSlices, NamedTargetPortsAreLookedUpInThePod) {
  const json::Value service =
      Service().SetPath({"spec", "ports"}, Yaml("[{port: 80, targetPort: api}, {port: 81}]"));
  const auto slices = MakeEndpointSlices(service, {Pod("a", kReady)});
  EXPECT_EQ(slices[0]["ports"],
            Yaml("[{name: '', port: 9000, protocol: TCP}, {name: '', port: 81, protocol: TCP}]"));
}

TEST(MakeEndpointSlices, HostnameUnderItsSubdomain) {
  const json::Value pod =
      Pod("a", kReady).SetPath({"spec", "hostname"}, "h0").SetPath({"spec", "subdomain"}, "web");
  EXPECT_EQ(MakeEndpointSlices(Service(), {pod})[0]["endpoints"].At(0)["hostname"].AsString(),
            "h0");
}

TEST(MakeEndpointSlices, TheZoneIsThatOfTheNode) {
  const auto zone_of = [](const std::string& node) { return node == "n1" ? "west" : ""; };
  const json::Value elsewhere = Pod("b", kReady).SetPath({"spec", "nodeName"}, "n2");
  const auto slices = MakeEndpointSlices(Service(), {Pod("a", kReady), elsewhere}, zone_of);
  EXPECT_EQ(slices[0]["endpoints"].At(0)["zone"].AsString(), "west");
  EXPECT_FALSE(slices[0]["endpoints"].At(1).Has("zone"));
}

TEST(MakeEndpointSlices, HintsAsTheTrafficDistributionAsks) {
  const struct {
    const char* wanted;
    const char* status;
    const char* node;
    const char* hints;  // "" : none
  } rows[] = {
      {"trafficDistribution: PreferClose", kReady, "n1", "{forZones: [{name: west}]}"},
      {"trafficDistribution: PreferSameZone", kReady, "n1", "{forZones: [{name: west}]}"},
      {"trafficDistribution: PreferSameNode", kReady, "n1",
       "{forZones: [{name: west}], forNodes: [{name: n1}]}"},
      {"type: ClusterIP", kReady, "n1", ""},
      // A node without a zone.
      {"trafficDistribution: PreferSameZone", kReady, "n2", ""},
      {"trafficDistribution: PreferSameNode", kReady, "n2", "{forNodes: [{name: n2}]}"},
      // Those that are not ready are for nobody in particular.
      {"trafficDistribution: PreferSameNode", "phase: Running, podIP: 10.42.0.5", "n1", ""},
      {"trafficDistribution: PreferSameZone, publishNotReadyAddresses: true",
       "phase: Running, podIP: 10.42.0.5", "n1", "{forZones: [{name: west}]}"},
  };
  const auto zone_of = [](const std::string& node) { return node == "n1" ? "west" : ""; };
  for (const auto& row : rows) {
    const json::Value pod = Pod("a", row.status).SetPath({"spec", "nodeName"}, row.node);
    const auto slices = MakeEndpointSlices(Service(row.wanted), {pod}, zone_of);
    const json::Value& endpoint = slices.at(0)["endpoints"].At(0);
    if (std::string_view(row.hints).empty()) {
      EXPECT_FALSE(endpoint.Has("hints")) << row.wanted << " " << row.node;
    } else {
      EXPECT_EQ(endpoint["hints"], Yaml(row.hints)) << row.wanted << " " << row.node;
    }
  }
}

TEST(MakeEndpointSlices, SplitsAtTheLimitUnderFixedNames) {
  std::vector<json::Value> pods;
  for (size_t i = 0; i < kMaxEndpointsPerSlice + 1; ++i) {
    pods.push_back(Pod("p" + std::to_string(i), kReady));
  }
  const auto slices = MakeEndpointSlices(Service(), pods);
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_EQ(slices[0]["endpoints"].size(), kMaxEndpointsPerSlice);
  EXPECT_EQ(slices[1]["endpoints"].size(), 1u);
  EXPECT_NE(slices[0]["metadata"]["name"], slices[1]["metadata"]["name"]);
  EXPECT_EQ(slices[0]["metadata"]["name"],
            MakeEndpointSlices(Service(), {})[0]["metadata"]["name"]);
  EXPECT_EQ(slices[0]["metadata"]["name"].AsString().size(), std::string_view("web-xxxxx").size());
}

class EndpointSliceTest : public ControllerTest {
 protected:
  const json::Value& Slice() {
    static const json::Value kNone;
    for (const auto& [key, object] : api_.objects) {
      if (key.starts_with(kSlices)) return object;
    }
    return kNone;
  }
};

TEST_F(EndpointSliceTest, FollowsPodsAndServices) {
  Start(std::make_unique<EndpointSliceController>());
  api_.Put(kServices, Service());
  Settle();
  EXPECT_TRUE(Slice()["endpoints"].empty());
  api_.Put(kPods, Pod("a", kReady));
  api_.Put(kPods, Pod("other", kReady).SetPath({"metadata", "labels"}, Yaml("{app: db}")));
  Settle();
  EXPECT_EQ(Slice()["endpoints"].size(), 1u);
  api_.Put(kPods, Pod("a", kReady).SetPath({"metadata", "labels"}, Yaml("{app: db}")));
  Settle();
  EXPECT_TRUE(Slice()["endpoints"].empty());
  EXPECT_EQ(api_.Count(kSlices), 1u);
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

TEST_F(EndpointSliceTest, HintsFollowTheServiceAndTheNode) {
  Start(std::make_unique<EndpointSliceController>());
  const auto put_node = [&](const std::string& name, const std::string& labels) {
    Put(kNodes,
        fmt::format("{{apiVersion: v1, kind: Node, metadata: {{name: {}, labels: {{{}}}}}}}", name,
                    labels));
  };
  const auto told = [&] {
    Settle();
    const json::Value& endpoint = Slice()["endpoints"].At(0);
    return endpoint["zone"].Str() + "/" + endpoint["hints"]["forZones"].At(0)["name"].Str() + "/" +
           endpoint["hints"]["forNodes"].At(0)["name"].Str();
  };
  const std::string zone = "topology.kubernetes.io/zone: ";
  api_.Put(kServices, Service("trafficDistribution: PreferSameZone"));
  api_.Put(kPods, Pod("a", kReady));
  EXPECT_EQ(told(), "//");
  put_node("n1", zone + "west");  // the node is known after its pod
  EXPECT_EQ(told(), "west/west/");
  api_.Put(kServices, Service("trafficDistribution: PreferSameNode"));
  EXPECT_EQ(told(), "west/west/n1");
  put_node("n1", zone + "east");
  EXPECT_EQ(told(), "east/east/n1");
  // What is none of its business writes nothing.
  const size_t requests = api_.requests.size();
  put_node("n1", zone + "east, more: x");
  put_node("n2", zone + "west");
  EXPECT_EQ(told(), "east/east/n1");
  EXPECT_EQ(api_.requests.size(), requests);
  put_node("n1", "");
  EXPECT_EQ(told(), "//n1");
  api_.Put(kServices, Service());
  EXPECT_EQ(told(), "//");
  EXPECT_FALSE(Slice()["endpoints"].At(0).Has("hints"));
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

TEST_F(EndpointSliceTest, ServicesWithoutSelectorAreTheUsersOwn) {
  Start(std::make_unique<EndpointSliceController>());
  api_.Put(kServices, Service().RemovePath({"spec", "selector"}));
  Settle();
  EXPECT_EQ(api_.Count(kSlices), 0u);
}

}  // namespace
}  // namespace muster::controllers
