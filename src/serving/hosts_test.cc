#include "serving/hosts.h"

#include <gtest/gtest.h>

#include "client/fake_api.h"
#include "client/in_process_transport.h"
#include "client/informer.h"
#include "loop/sim_loop.h"
#include "serving/inference_service.h"
#include "serving/test_services.h"

namespace muster::serving {
namespace {

using client::ObjectKey;
using json::Value;

constexpr char kServicesPath[] = "/apis/serving.kserve.io/v1beta1/inferenceservices";
constexpr char kGraphsPath[] = "/apis/serving.kserve.io/v1alpha1/inferencegraphs";

class HostsTest : public testing::Test {
 protected:
  HostsTest() {
    IndexByHost(services_);
    IndexByHost(graphs_);
    informers_.Start();
    loop_.RunFor(seconds(1));
  }

  void Put(const char* path, std::string_view ns, std::string_view name, int second,
           std::string_view more = "") {
    const std::string kind = path == kGraphsPath ? "InferenceGraph" : "InferenceService";
    api_.Put(path,
             Yaml(fmt::format("{{kind: {}, apiVersion: serving.kserve.io/x, metadata: {{name: {}, "
                              "namespace: {}, creationTimestamp: '2026-01-02T03:04:{:02}Z'{}}}}}",
                              kind, name, ns, second, more)));
    loop_.RunFor(milliseconds(10));
  }
  std::string Owner(const client::Informer& informer, const ObjectKey& key) {
    return HostOwner(services_, graphs_, *informer.Find(key));
  }
  std::string Fault(std::string_view url, std::string_view ns = "ml") {
    return UrlFault(url, ns, services_, cluster_services_);
  }

  SimLoop loop_;
  client::FakeApi api_{loop_};
  client::InProcessTransport transport_{loop_, api_, {"", "serving", {}}};
  client::ApiClient client_{loop_, transport_, "serving"};
  client::InformerSet informers_{client_};
  client::Informer& services_ = informers_.Get(kInferenceServices, json::Fields::Whole());
  client::Informer& graphs_ = informers_.Get(kInferenceGraphs, json::Fields::Whole());
  client::Informer& cluster_services_ =
      informers_.Get(client::resources::kServices, {{"spec", "clusterIP"}});
};

TEST_F(HostsTest, OfOneNameTheOlderHasIt) {
  Put(kGraphsPath, "c", "x", 5);
  Put(kServicesPath, "c", "x", 6);
  const auto graph = [&] { return graphs_.Find({"c", "x"}); };
  const auto service = [&] { return services_.Find({"c", "x"}); };
  EXPECT_TRUE(HasNameInstead(graph(), *service()));
  EXPECT_FALSE(HasNameInstead(service(), *graph()));
  EXPECT_FALSE(HasNameInstead(nullptr, *graph()));
  // Who is stopped has none.
  Put(kServicesPath, "c", "x", 4);
  EXPECT_TRUE(HasNameInstead(service(), *graph()));
  Put(kServicesPath, "c", "x", 4, ", annotations: {serving.kserve.io/stop: 'true'}");
  EXPECT_FALSE(HasNameInstead(service(), *graph()));
}

TEST_F(HostsTest, AHostThatSeveralWantBelongsToTheOldest) {
  Put(kServicesPath, "c", "a-b", 5);
  Put(kServicesPath, "b-c", "a", 6);
  Put(kServicesPath, "c", "other", 1);
  EXPECT_EQ(Owner(services_, {"c", "a-b"}), "");
  EXPECT_EQ(Owner(services_, {"b-c", "a"}), "InferenceService c/a-b");
  EXPECT_EQ(Owner(services_, {"c", "other"}), "");
  // Of the same second: that of the first namespace.
  Put(kServicesPath, "b-c", "a", 5);
  EXPECT_EQ(Owner(services_, {"b-c", "a"}), "");
  EXPECT_EQ(Owner(services_, {"c", "a-b"}), "InferenceService b-c/a");
  // Who goes, or is stopped, has none.
  Put(kServicesPath, "b-c", "a", 5, ", annotations: {serving.kserve.io/stop: 'true'}");
  EXPECT_EQ(Owner(services_, {"c", "a-b"}), "");
  EXPECT_EQ(Owner(services_, {"b-c", "a"}), "");
  Put(kGraphsPath, "b-c", "a", 1);
  EXPECT_EQ(Owner(services_, {"c", "a-b"}), "InferenceGraph b-c/a");
}

TEST_F(HostsTest, AChangeConcernsThoseThatWantTheSameHost) {
  Put(kServicesPath, "c", "a-b", 5);
  Put(kServicesPath, "b-c", "a", 6);
  Put(kServicesPath, "c", "other", 1);
  const client::Trigger trigger = OnSharedHost(kInferenceServices, services_);
  const Value& object = *services_.Find({"b-c", "a"});
  const std::vector<ObjectKey> both = {{"b-c", "a"}, {"c", "a-b"}};
  EXPECT_EQ(trigger.keys({"b-c", "a"}, {}, object), both);
  EXPECT_EQ(trigger.keys({"b-c", "a"}, object, {}), both);
  EXPECT_TRUE(trigger.keys({"b-c", "a"}, object, object.Set("status", "x")).empty());
  const Value again = object.SetPath({"metadata", "creationTimestamp"}, "2026-01-02T03:05:00Z");
  EXPECT_EQ(trigger.keys({"b-c", "a"}, object, again), both);
}

TEST_F(HostsTest, AUrlLeadsToInferenceServicesOnly) {
  api_.Put("/api/v1/services",
           Yaml("{metadata: {name: iris, namespace: ml}, spec: {clusterIP: 10.43.0.7}}"));
  api_.Put("/api/v1/services",
           Yaml("{metadata: {name: db, namespace: ml}, spec: {clusterIP: 10.43.0.8}}"));
  Put(kServicesPath, "ml", "iris", 1);
  for (const char* url :
       {"http://iris", "http://iris.ml/v1/models/iris:predict", "http://Iris.ML.svc:80/x",
        "http://iris.ml.svc.cluster.local", "http://iris-ml.example.com",
        "http://iris.ml.example.com", "http://10.43.0.7:80/"})
    EXPECT_EQ(Fault(url), "") << url;
  for (const char* url : {"http://db.ml", "http://10.43.0.8", "http://127.0.0.1:10250/pods",
                          "http://localhost", "http://[::1]/", "http://169.254.169.254/latest",
                          "http://iris.other", "http://iris.ml.evil.org", "nonsense"})
    EXPECT_NE(Fault(url), "") << url;
  EXPECT_EQ(Fault("http://127.0.0.1:10250/pods"),
            "serviceUrl http://127.0.0.1:10250/pods: 127.0.0.1 is no InferenceService (it may not "
            "be in the loopback range (127.0.0.0/8, ::1/128)); a graph reaches InferenceServices "
            "only");
  // A name alone: that of its own namespace, or the only one.
  EXPECT_EQ(Fault("http://iris", "a"), "");
  Put(kServicesPath, "b", "iris", 1);
  EXPECT_NE(Fault("http://iris", "a"), "");
  EXPECT_EQ(Fault("http://iris", "b"), "");
}

}  // namespace
}  // namespace muster::serving
