#include "controllers/endpointslice/endpoints_mirror_controller.h"

#include "controllers/controller_test_base.h"

namespace muster::controllers {
namespace {

json::Value OutsideEndpoints(std::string_view metadata = "") {
  return Yaml(fmt::format(R"(
apiVersion: v1
kind: Endpoints
metadata: {{name: db, namespace: d, uid: e1, labels: {{team: a}} {}}}
subsets:
- addresses: [{{ip: 10.9.9.9, hostname: one, nodeName: n1}}, {{ip: 'fd00::1'}}]
  notReadyAddresses: [{{ip: 10.9.9.8}}]
  ports: [{{name: sql, port: 5432, protocol: TCP, appProtocol: x}}]
- addresses: [{{ip: 10.9.9.7}}]
)",
                          metadata));
}

json::Value DbService(std::string_view spec = "ports: [{port: 5432}]") {
  return Yaml(fmt::format(R"(
apiVersion: v1
kind: Service
metadata: {{name: db, namespace: d, uid: s1}}
spec: {{{}}}
)",
                          spec));
}

TEST(MirrorEndpoints, ASliceForEachSubsetAndFamily) {
  const auto slices = MirrorEndpoints(OutsideEndpoints());
  ASSERT_EQ(slices.size(), 3u);
  EXPECT_EQ(slices[0]["addressType"].AsString(), "IPv4");
  EXPECT_EQ(slices[0]["endpoints"], Yaml(R"(
- {addresses: [10.9.9.9], conditions: {ready: true}, hostname: one, nodeName: n1}
- {addresses: [10.9.9.8], conditions: {ready: false}}
)"));
  EXPECT_EQ(slices[0]["ports"], Yaml("[{name: sql, port: 5432, protocol: TCP, appProtocol: x}]"));
  EXPECT_EQ(slices[0]["metadata"]["labels"], Yaml(R"({team: a, kubernetes.io/service-name: db,
    endpointslice.kubernetes.io/managed-by: endpointslicemirroring-controller.k8s.io})"));
  EXPECT_EQ(slices[0]["metadata"]["ownerReferences"].At(0)["uid"].AsString(), "e1");
  EXPECT_EQ(slices[1]["addressType"].AsString(), "IPv6");
  EXPECT_EQ(slices[1]["endpoints"].At(0)["addresses"], Yaml("['fd00::1']"));
  EXPECT_EQ(slices[2]["ports"].size(), 0u);
  EXPECT_NE(slices[0]["metadata"]["name"], slices[2]["metadata"]["name"]);
}

TEST(MirrorEndpoints, NotThoseThatSayNo) {
  json::Value labelled = OutsideEndpoints().SetPath(
      {"metadata", "labels", "endpointslice.kubernetes.io/skip-mirror"}, "true");
  EXPECT_TRUE(MirrorEndpoints(labelled).empty());
  EXPECT_TRUE(MirrorEndpoints(
                  OutsideEndpoints(", annotations: {control-plane.alpha.kubernetes.io/leader: x}"))
                  .empty());
}

TEST(MirrorEndpoints, CopiesAnnotationsThatAreNotAboutTheEndpoints) {
  const auto slices = MirrorEndpoints(OutsideEndpoints(
      ", annotations: {mine: x, kubectl.kubernetes.io/last-applied-configuration: y}"));
  EXPECT_EQ(slices[0]["metadata"]["annotations"], Yaml("{mine: x}"));
}

TEST(MirrorEndpoints, AThousandAddressesOfASubset) {
  json::Array addresses;
  for (int i = 0; i < 1100; ++i) {
    const std::string ip = i % 10 == 0 ? fmt::format("fd00::{:x}", i + 1)
                                       : fmt::format("10.9.{}.{}", i / 250, i % 250);
    addresses.push_back(json::Obj({{"ip", ip}}));
  }
  const auto slices = MirrorEndpoints(OutsideEndpoints().Set(
      "subsets", json::List({json::Obj({{"addresses", json::Value(std::move(addresses))}})})));
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_EQ(slices[0]["endpoints"].size(), 900u);
  EXPECT_EQ(slices[1]["endpoints"].size(), 100u);
}

class EndpointsMirrorTest : public ControllerTest {};

TEST_F(EndpointsMirrorTest, FollowsEndpointsOfServicesWithoutASelector) {
  Start(std::make_unique<EndpointsMirrorController>());
  api_.Put(kEndpoints, OutsideEndpoints());
  Settle();
  EXPECT_EQ(api_.Count(kSlices), 0u) << "there is no Service";
  api_.Put(kServices, DbService());
  Settle();
  EXPECT_EQ(api_.Count(kSlices), 3u);
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
  json::Value fewer = Get(kEndpoints, "d", "db");
  fewer = fewer.Set("subsets", Yaml("[{addresses: [{ip: 10.9.9.1}]}]"));
  api_.Put(kEndpoints, fewer);
  Settle();
  ASSERT_EQ(api_.Count(kSlices), 1u);
  EXPECT_EQ(All(kSlices)[0]["endpoints"].At(0)["addresses"], Yaml("[10.9.9.1]"));
  api_.Put(kServices, DbService("selector: {app: db}, ports: [{port: 5432}]"));
  Settle();
  EXPECT_EQ(api_.Count(kSlices), 0u) << "its pods count now";
}

TEST_F(EndpointsMirrorTest, EndpointsGoWithTheirService) {
  Start(std::make_unique<EndpointsMirrorController>());
  api_.Put(kEndpoints, OutsideEndpoints());
  Settle();
  EXPECT_EQ(api_.Count(kEndpoints), 1u) << "nobody deletes those that never had a Service";
  api_.Put(kServices, DbService());
  Settle();
  EXPECT_EQ(api_.Count(kSlices), 3u);
  api_.Remove(kServices, "d", "db");
  Settle();
  EXPECT_EQ(api_.Count(kEndpoints), 0u);
  EXPECT_EQ(api_.Count(kSlices), 0u);
}

}  // namespace
}  // namespace muster::controllers
