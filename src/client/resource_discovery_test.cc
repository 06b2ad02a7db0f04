#include "client/resource_discovery.h"

#include <gtest/gtest.h>

#include "client/fake_api.h"
#include "client/in_process_transport.h"
#include "loop/sim_loop.h"

namespace muster::client {
namespace {

class ResourceDiscoveryTest : public testing::Test {
 protected:
  SimLoop loop_;
  FakeApi api_{loop_};
  InProcessTransport transport_{loop_, api_, {}};
  ApiClient client_{loop_, transport_, "tester"};
};

json::Value ResourceList(const std::string& group_version, const std::string& name,
                         const std::string& kind) {
  return json::Obj(
      {{"groupVersion", group_version},
       {"resources", json::List({json::Obj({{"name", name},
                                            {"kind", kind},
                                            {"namespaced", true},
                                            {"verbs", json::Strings({"list", "watch", "delete"})}}),
                                 json::Obj({{"name", name + "/status"}, {"kind", kind}})})}});
}

TEST_F(ResourceDiscoveryTest, FindsBuiltInAndCustomKinds) {
  api_.static_answers["/api/v1"] = ResourceList("v1", "pods", "Pod");
  api_.static_answers["/apis"] = *json::Parse(
      R"({"groups":[{"name":"batch","preferredVersion":{"groupVersion":"batch/v1"}},
                    {"name":"events.k8s.io",
                     "preferredVersion":{"groupVersion":"events.k8s.io/v1"}}]})");
  api_.static_answers["/apis/batch/v1"] = ResourceList("batch/v1", "jobs", "Job");
  InformerSet informers(client_);
  ResourceDiscovery discovery(client_, informers);
  std::vector<std::string> told;
  discovery.Subscribe(
      [&](const ServedKind& kind) { told.push_back(kind.resource.group + "/" + kind.kind); });
  discovery.Start();
  informers.Start();
  loop_.RunReady();
  EXPECT_TRUE(discovery.Synced());
  EXPECT_EQ(told, (std::vector<std::string>{"/Pod", "batch/Job"}));
  api_.Put("/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
           *json::Parse(
               R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
              "metadata":{"name":"x.g"},
          "spec":{"group":"g","scope":"Cluster","names":{"kind":"X","plural":"xs"},
                  "versions":[{"name":"v2","served":false},
                              {"name":"v1","served":true,"storage":true}]}})"));
  loop_.RunReady();
  const ServedKind* kind = discovery.Find("g", "X");
  ASSERT_NE(kind, nullptr);
  EXPECT_EQ(kind->resource, (Resource{"g", "v1", "xs"}));
  EXPECT_FALSE(kind->namespaced);
  api_.Remove("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "", "x.g");
  loop_.RunReady();
  EXPECT_EQ(discovery.Find("g", "X"), nullptr);
}

TEST_F(ResourceDiscoveryTest, GoesOnWithoutAServerThatDoesNotAnswer) {
  api_.static_answers["/api/v1"] = ResourceList("v1", "pods", "Pod");
  api_.static_answers["/apis"] = *json::Parse(
      R"({"groups":[{"name":"far.io","preferredVersion":{"groupVersion":"far.io/v1"}},
                    {"name":"batch","preferredVersion":{"groupVersion":"batch/v1"}}]})");
  InformerSet informers(client_);
  ResourceDiscovery discovery(client_, informers);
  discovery.Start();
  informers.Start();
  loop_.RunFor(seconds(1));
  // Nobody says that it is another server's.
  EXPECT_FALSE(discovery.Synced());
  api_.static_answers["/apis/apiregistration.k8s.io/v1/apiservices/v1.far.io"] =
      *json::Parse(R"({"spec":{"service":{"name":"far"}}})");
  loop_.RunFor(seconds(30));
  EXPECT_FALSE(discovery.Synced());  // batch is ours
  api_.static_answers["/apis/batch/v1"] = ResourceList("batch/v1", "jobs", "Job");
  loop_.RunFor(seconds(60));
  EXPECT_TRUE(discovery.Synced());
  EXPECT_NE(discovery.Find("batch", "Job"), nullptr);
}

TEST_F(ResourceDiscoveryTest, AServerThatComesLaterBringsItsKinds) {
  api_.static_answers["/apis"] = *json::Parse(R"({"groups":[]})");
  api_.static_answers["/api/v1"] = ResourceList("v1", "pods", "Pod");
  InformerSet informers(client_);
  ResourceDiscovery discovery(client_, informers);
  discovery.Start();
  informers.Start();
  loop_.RunReady();
  const auto service = [](const std::string& status, const std::string& behind) {
    return *json::Parse(
        R"({"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService",)"
        R"("metadata":{"name":"v1.far.io"},"spec":{"group":"far.io","version":"v1")" +
        behind + R"(},"status":{"conditions":[{"type":"Available","status":")" + status +
        R"("}]}})");
  };
  constexpr const char* kPath = "/apis/apiregistration.k8s.io/v1/apiservices";
  constexpr const char* kBehind = R"(,"service":{"name":"far"})";
  api_.static_answers["/apis/far.io/v1"] = ResourceList("far.io/v1", "stars", "Star");
  api_.Put(kPath, service("True", ""));  // this server's own
  loop_.RunReady();
  EXPECT_EQ(discovery.Find("far.io", "Star"), nullptr);
  api_.Put(kPath, service("False", kBehind));
  loop_.RunReady();
  EXPECT_EQ(discovery.Find("far.io", "Star"), nullptr);
  api_.Put(kPath, service("True", kBehind));
  loop_.RunReady();
  EXPECT_NE(discovery.Find("far.io", "Star"), nullptr);
}

TEST_F(ResourceDiscoveryTest, TriesAgain) {
  InformerSet informers(client_);
  ResourceDiscovery discovery(client_, informers);
  discovery.Start();
  informers.Start();
  loop_.RunFor(seconds(1));
  EXPECT_FALSE(discovery.Synced());
  api_.static_answers["/apis"] = *json::Parse(R"({"groups":[]})");
  api_.static_answers["/api/v1"] = ResourceList("v1", "pods", "Pod");
  loop_.RunFor(seconds(30));
  EXPECT_TRUE(discovery.Synced());
}

}  // namespace
}  // namespace muster::client
