#include "apiserver/kinds/quota_ledger.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "apiserver/apiserver_testing.h"
#include "apiserver/stored_object.h"
#include "json/write.h"
#include "schema/registry.h"

namespace muster::apiserver {
namespace {

constexpr const char* kIn = "/api/v1/namespaces/default/";

class QuotaTest : public testing::Test {
 protected:
  void Quota(const std::string& name, const std::string& spec) {
    const auto writer =
        test_.Send("POST", std::string(kIn) + "resourcequotas",
                   R"({"metadata":{"name":")" + name + R"("},"spec":)" + spec + "}");
    ASSERT_EQ(writer->status, 201) << writer->body;
    EXPECT_EQ(writer->headers.Get("Warning"), "") << "it is acted on";
  }
  static std::string Pod(const std::string& name, const std::string& resources = "{}") {
    return R"({"metadata":{"name":")" + name +
           R"("},"spec":{"containers":[{"name":"c1","image":"i","resources":)" + resources + "}]}}";
  }
  // "" if it is taken, else what the server says.
  std::string Try(const std::string& method, const std::string& where, const std::string& body) {
    net::Headers headers;
    if (method == "PATCH") headers.Add("Content-Type", "application/merge-patch+json");
    const auto writer = test_.Send(method, kIn + where, body, headers);
    if (writer->status < 300) return "";
    return std::to_string(writer->status) + " " + TestServer::Json(*writer)["message"].Str();
  }
  std::string TryPod(const std::string& name, const std::string& resources = "{}") {
    return Try("POST", "pods", Pod(name, resources));
  }

  TestServer test_;
};

TEST_F(QuotaTest, RefusesWhatIsTooMuchInUpstreamsWords) {
  Quota("q", R"({"hard":{"requests.cpu":"2","pods":"5","requests.nvidia.com/gpu":"1"}})");
  EXPECT_EQ(TryPod("a", R"({"requests":{"cpu":"1"}})"), "");
  EXPECT_EQ(TryPod("x", R"({"requests":{"cpu":"2"}})"),
            "403 pods \"x\" is forbidden: exceeded quota: q, requested: requests.cpu=2, used: "
            "requests.cpu=1, limited: requests.cpu=2");
  EXPECT_EQ(TryPod("x", R"({"requests":{"cpu":"1500m"},"limits":{"nvidia.com/gpu":"2"}})"),
            "403 pods \"x\" is forbidden: exceeded quota: q, requested: "
            "requests.cpu=1500m,requests.nvidia.com/gpu=2, used: "
            "requests.cpu=1,requests.nvidia.com/gpu=0, limited: "
            "requests.cpu=2,requests.nvidia.com/gpu=1");
  EXPECT_EQ(TryPod("b", R"({"requests":{"cpu":"1"},"limits":{"nvidia.com/gpu":"1"}})"), "");
}

TEST_F(QuotaTest, ContainersMustStateWhatAQuotaLimits) {
  Quota("q", R"({"hard":{"limits.cpu":"2","limits.memory":"1Gi"}})");
  EXPECT_EQ(TryPod("x"),
            "403 pods \"x\" is forbidden: failed quota: q: must specify limits.cpu for: c1; "
            "limits.memory for: c1");
  EXPECT_EQ(TryPod("x", R"({"limits":{"cpu":"1","memory":"1Mi"}})"), "");
}

TEST_F(QuotaTest, WhatALimitRangeFillsInCounts) {
  Quota("q", R"({"hard":{"limits.cpu":"2"}})");
  EXPECT_EQ(Try("POST", "limitranges",
                R"({"metadata":{"name":"l"},"spec":{"limits":[{"type":"Container",
                    "default":{"cpu":"1500m"}}]}})"),
            "");
  EXPECT_EQ(TryPod("a"), "");
  EXPECT_EQ(TryPod("b"),
            "403 pods \"b\" is forbidden: exceeded quota: q, requested: limits.cpu=1500m, used: "
            "limits.cpu=1500m, limited: limits.cpu=2");
}

TEST_F(QuotaTest, EveryQuotaOfTheNamespaceMustAgree) {
  Quota("b", R"({"hard":{"pods":"2"}})");
  Quota("a", R"({"hard":{"pods":"1"},"scopes":["BestEffort"]})");
  EXPECT_EQ(TryPod("one"), "");
  EXPECT_EQ(TryPod("two"),
            "403 pods \"two\" is forbidden: exceeded quota: a, requested: pods=1, used: pods=1, "
            "limited: pods=1");
  const std::string busy = R"({"requests":{"cpu":"1"}})";
  EXPECT_EQ(TryPod("two", busy), "");
  EXPECT_EQ(TryPod("three", busy),
            "403 pods \"three\" is forbidden: exceeded quota: b, requested: pods=1, used: pods=2, "
            "limited: pods=2");
}

// The race that upstream's informers leave open, and none of them has committed yet.
TEST_F(QuotaTest, ABurstOfCreatesGetsWhatIsThereAndNoMore) {
  Quota("q", R"({"hard":{"pods":"7"}})");
  std::vector<TestServer::WriterPtr> writers;
  for (int i = 0; i < 200; ++i)
    writers.push_back(test_.Begin("POST", std::string(kIn) + "pods", Pod("p" + std::to_string(i))));
  test_.loop.RunReady();
  EXPECT_EQ(std::ranges::count_if(writers, [](const auto& one) { return one->status == 201; }), 7);
  EXPECT_EQ(std::ranges::count_if(writers, [](const auto& one) { return one->status == 403; }),
            193);
}

TEST_F(QuotaTest, WhatEndsOrGoesMakesRoom) {
  Quota("q", R"({"hard":{"pods":"1","count/pods":"3"}})");
  EXPECT_EQ(TryPod("a"), "");
  EXPECT_NE(TryPod("b"), "");
  EXPECT_EQ(Try("PATCH", "pods/a/status", R"({"status":{"phase":"Succeeded"}})"), "");
  EXPECT_EQ(TryPod("b"), "");
  EXPECT_EQ(Try("DELETE", "pods/b", ""), "");
  EXPECT_EQ(TryPod("c"), "");
  EXPECT_EQ(Try("DELETE", "pods/c", ""), "");
  EXPECT_EQ(TryPod("d"), "");
  EXPECT_EQ(Try("DELETE", "pods/a", ""), "");
  EXPECT_EQ(TryPod("e"),
            "403 pods \"e\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, "
            "limited: pods=1")
      << "a had ended before, and frees nothing more by going";
}

TEST_F(QuotaTest, ADryRunIsCheckedAndTakesNothing) {
  Quota("q", R"({"hard":{"pods":"1","services":"1"}})");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Try("POST", "pods?dryRun=All", Pod("a")), "");
  EXPECT_EQ(TryPod("a"), "");
  EXPECT_TRUE(Try("POST", "pods?dryRun=All", Pod("b")).starts_with("403 "));
}

TEST_F(QuotaTest, PodsThatDoNotGoInTimeStopCounting) {
  Quota("q", R"({"hard":{"pods":"1"}})");
  EXPECT_EQ(Try("POST", "pods",
                R"({"metadata":{"name":"a"},"spec":{"nodeName":"n","terminationGracePeriodSeconds":
                    10,"containers":[{"name":"c","image":"i"}]}})"),
            "");
  EXPECT_EQ(Try("DELETE", "pods/a", ""), "");
  test_.loop.RunFor(seconds(19));
  EXPECT_NE(TryPod("b"), "");
  test_.loop.RunFor(seconds(3));
  EXPECT_EQ(TryPod("b"), "");
  EXPECT_EQ(Try("DELETE", "pods/a?gracePeriodSeconds=0", ""), "");
  EXPECT_NE(TryPod("c"), "");
}

TEST_F(QuotaTest, UpdatesThatTakeMoreAreCheckedAndOthersNever) {
  Quota("q", R"({"hard":{"services":"3","services.nodeports":"2","services.loadbalancers":"0"}})");
  const auto type = [](const std::string& name) { return R"({"spec":{"type":")" + name + "\"}}"; };
  for (const char* name : {"a", "b"}) {
    EXPECT_EQ(Try("POST", "services",
                  R"({"metadata":{"name":")" + std::string(name) +
                      R"("},"spec":{"ports":[{"port":1,"name":"x"},{"port":2,"name":"y"}]}})"),
              "");
  }
  EXPECT_EQ(Try("PATCH", "services/a", type("NodePort")), "");
  EXPECT_EQ(Try("PATCH", "services/b", type("NodePort")),
            "403 services \"b\" is forbidden: exceeded quota: q, requested: "
            "services.nodeports=2, used: services.nodeports=2, limited: services.nodeports=2");
  EXPECT_EQ(Try("PATCH", "services/a", type("LoadBalancer")),
            "403 services \"a\" is forbidden: exceeded quota: q, requested: "
            "services.loadbalancers=1, used: services.loadbalancers=0, limited: "
            "services.loadbalancers=0");
  EXPECT_EQ(Try("PATCH", "resourcequotas/q", R"({"spec":{"hard":{"services.nodeports":"1"}}})"),
            "");
  EXPECT_EQ(Try("PATCH", "services/a", R"({"metadata":{"labels":{"l":"m"}}})"), "")
      << "takes no more than before";
  EXPECT_EQ(Try("PATCH", "services/a", type("ClusterIP")), "");
  EXPECT_EQ(Try("PATCH", "services/b", type("NodePort")),
            "403 services \"b\" is forbidden: exceeded quota: q, requested: "
            "services.nodeports=2, used: services.nodeports=0, limited: services.nodeports=1");
}

TEST_F(QuotaTest, ARefusedServiceGivesItsPortBack) {
  Quota("q", R"({"hard":{"services":"2"}})");  // default/kubernetes is one
  const auto service = [&](const std::string& name) {
    return Try("POST", "services",
               R"({"metadata":{"name":")" + name +
                   R"("},"spec":{"type":"NodePort","ports":[{"port":1,"nodePort":30123}]}})");
  };
  EXPECT_EQ(
      Try("POST", "services", R"({"metadata":{"name":"first"},"spec":{"ports":[{"port":1}]}})"),
      "");
  EXPECT_TRUE(service("a").starts_with("403 services \"a\" is forbidden: exceeded quota: q"));
  EXPECT_EQ(Try("DELETE", "services/first", ""), "");
  EXPECT_EQ(service("a"), "");
}

TEST_F(QuotaTest, ClaimsAndTheirSizes) {
  Quota("q", R"({"hard":{"requests.storage":"10Gi",
                 "gold.storageclass.storage.k8s.io/persistentvolumeclaims":"1"}})");
  const auto claim = [&](const std::string& name, const std::string& size,
                         const std::string& storage_class) {
    return Try("POST", "persistentvolumeclaims",
               R"({"metadata":{"name":")" + name + R"("},"spec":{"storageClassName":")" +
                   storage_class + R"(","accessModes":["ReadWriteOnce"],"resources":{"requests":
                   {"storage":")" +
                   size + "\"}}}}");
  };
  EXPECT_EQ(claim("a", "4Gi", "gold"), "");
  EXPECT_EQ(claim("b", "1Gi", "gold"),
            "403 persistentvolumeclaims \"b\" is forbidden: exceeded quota: q, requested: "
            "gold.storageclass.storage.k8s.io/persistentvolumeclaims=1, used: "
            "gold.storageclass.storage.k8s.io/persistentvolumeclaims=1, limited: "
            "gold.storageclass.storage.k8s.io/persistentvolumeclaims=1");
  EXPECT_EQ(claim("b", "7Gi", "silver"),
            "403 persistentvolumeclaims \"b\" is forbidden: exceeded quota: q, requested: "
            "requests.storage=7Gi, used: requests.storage=4Gi, limited: requests.storage=10Gi");
  EXPECT_EQ(claim("b", "6Gi", "silver"), "");
}

TEST_F(QuotaTest, CountsAnyKind) {
  Quota("q", R"({"hard":{"count/jobs.batch":"1","configmaps":"2","count/secrets":"1",
                 "resourcequotas":"1","count/widgets.example.com":"1"}})");
  const auto config = [&](const char* name) {
    return Try("POST", "configmaps", R"({"metadata":{"name":")" + std::string(name) + "\"}}");
  };
  EXPECT_EQ(config("a"), "");
  EXPECT_EQ(config("b"), "");
  EXPECT_EQ(config("c"),
            "403 configmaps \"c\" is forbidden: exceeded quota: q, requested: configmaps=1, used: "
            "configmaps=2, limited: configmaps=2");
  EXPECT_EQ(Try("POST", "resourcequotas", R"({"metadata":{"name":"r"}})"),
            "403 resourcequotas \"r\" is forbidden: exceeded quota: q, requested: "
            "resourcequotas=1, used: resourcequotas=1, limited: resourcequotas=1");
  test_.Send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
             R"({"metadata":{"name":"widgets.example.com"},"spec":{"group":"example.com",
                 "scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},"versions":[
                 {"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":
                 {"type":"object"}}}]}})");
  const auto widget = [&](const char* name) {
    return test_.Send("POST", "/apis/example.com/v1/namespaces/default/widgets",
                      R"({"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":")" +
                          std::string(name) + "\"}}");
  };
  EXPECT_EQ(widget("a")->status, 201);
  EXPECT_EQ(TestServer::Json(*widget("b"))["message"].AsString(),
            "widgets.example.com \"b\" is forbidden: exceeded quota: q, requested: "
            "count/widgets.example.com=1, used: count/widgets.example.com=1, limited: "
            "count/widgets.example.com=1");
  EXPECT_EQ(test_.Send("DELETE", "/apis/example.com/v1/namespaces/default/widgets/a")->status, 200);
  EXPECT_EQ(widget("b")->status, 201);
}

TEST_F(QuotaTest, OtherNamespacesAreFree) {
  Quota("q", R"({"hard":{"pods":"0"}})");
  test_.Send("POST", "/api/v1/namespaces", R"({"metadata":{"name":"other"}})");
  test_.Send("POST", "/api/v1/namespaces/other/serviceaccounts",
             R"({"metadata":{"name":"default"}})");
  EXPECT_NE(TryPod("a"), "");
  EXPECT_EQ(test_.Send("POST", "/api/v1/namespaces/other/pods", Pod("a"))->status, 201);
}

TEST_F(QuotaTest, AChangedQuotaCountsAnewAndARemovedOneNoMore) {
  Quota("q", R"({"hard":{"pods":"1"}})");
  EXPECT_EQ(TryPod("a", R"({"requests":{"cpu":"1"}})"), "");
  EXPECT_EQ(Try("PATCH", "resourcequotas/q", R"({"spec":{"hard":{"pods":null,"cpu":"2"}}})"), "");
  EXPECT_EQ(TryPod("b", R"({"requests":{"cpu":"2"}})"),
            "403 pods \"b\" is forbidden: exceeded quota: q, requested: cpu=2, used: cpu=1, "
            "limited: cpu=2");
  EXPECT_EQ(Try("DELETE", "resourcequotas/q", ""), "");
  EXPECT_EQ(TryPod("b", R"({"requests":{"cpu":"2"}})"), "");
}

// No task of the loop decodes 20,000 pods; a write waits for the count, and no burst gets past it.
TEST_F(QuotaTest, ALargeNamespaceIsCountedInSteps) {
  constexpr int kPods = 20'000, kRoom = 10, kBurst = 50;
  const schema::KindPtr pods = schema::Registry::BuiltIn().Find("", "v1", "pods");
  for (int i = 0; i < kPods; ++i) {
    const std::string name = fmt::format("p{}", i);
    store::Put put;
    put.key = ObjectKey(*pods, "default", name);
    StoredForm form = EncodeStored(*pods, *json::Parse(Pod(name, R"({"requests":{"cpu":"1"}})")));
    put.value = std::move(form.bytes);
    put.revision_slot = form.revision_slot;
    put.meta = std::move(form.meta);
    ASSERT_TRUE(test_.store->Write(std::move(put), [](const auto&) {}));
    if (i % 1000 == 999) test_.loop.RunReady();
  }
  const auto steps = [&] { return test_.loop.steps(); };
  Quota("q", fmt::format(R"({{"hard":{{"pods":"{}"}}}})", kPods + kRoom));
  std::vector<TestServer::WriterPtr> burst;
  for (int i = 0; i < kBurst; ++i) {
    burst.push_back(test_.Begin("POST", std::string(kIn) + "pods", Pod(fmt::format("new-{}", i))));
  }
  // Meanwhile other writes go on, and one of them makes room.
  ASSERT_TRUE(test_.loop.Step());
  const auto removal = test_.Begin("DELETE", std::string(kIn) + "pods/p7?gracePeriodSeconds=0");
  const uint64_t before = steps();
  while (removal->status == 0) ASSERT_TRUE(test_.loop.Step());
  EXPECT_LT(steps() - before, kPods / kMaxCountedAtOnce) << "it did not wait for the count";
  EXPECT_EQ(burst[0]->status, 0);
  while (burst[0]->status == 0) ASSERT_TRUE(test_.loop.Step());
  EXPECT_GE(steps() - before, kPods / kMaxCountedAtOnce);
  test_.loop.RunFor(seconds(1));
  int taken = 0;
  for (const auto& writer : burst) {
    taken += writer->status == 201;
    if (writer->status == 201) continue;
    EXPECT_EQ(writer->status, 403);
    EXPECT_NE(writer->body.find("exceeded quota: q, requested: pods=1, used: pods=20010"),
              std::string::npos)
        << writer->body;
  }
  EXPECT_EQ(taken, kRoom + 1);
}

TEST_F(QuotaTest, AServerThatStartsAnewKnowsWhatIsTaken) {
  Quota("q", R"({"hard":{"pods":"1"}})");
  EXPECT_EQ(TryPod("a"), "");
  test_.server.reset();
  test_.server = std::make_unique<ApiServer>(test_.loop, *test_.store, ServerOptions());
  EXPECT_NE(TryPod("b"), "");
  EXPECT_EQ(Try("DELETE", "pods/a", ""), "");
  EXPECT_EQ(TryPod("b"), "");
}

}  // namespace
}  // namespace muster::apiserver
