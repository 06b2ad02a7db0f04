#include "ray/service_pass.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "json/write.h"
#include "ray/test_objects.h"
#include "schema/conditions.h"

namespace muster::ray {
namespace {

const Time kNow = Time(seconds(1'700'000'000));

class ServicePassTest : public testing::Test {
 protected:
  // One pass; what it writes to the service and its clusters is so from then on.
  std::vector<std::string> Run() {
    pass_ = ReconcileService(service_, children_, observations_, now_, 1);
    if (const json::Value status = StatusOf(pass_); !status.IsNull())
      service_ = service_.Set("status", status);
    for (const client::Write& write : pass_.writes) Apply(write);
    std::vector<std::string> writes = WritesOf(pass_);
    std::erase(writes, "update rayservices s/status");
    return writes;
  }
  void Apply(const client::Write& write) {
    const std::string& plural = write.target.resource.plural;
    const bool creates = write.verb == client::Write::Verb::kCreate;
    if (plural == "rayclusters" && creates) {
      children_.clusters.push_back(
          write.body.SetPath({"metadata", "uid"}, "uid-" + write.target.name)
              .SetPath({"status", "conditions"}, Yaml("[{type: HeadPodReady, status: \"True\"}]")));
      const std::string address = fmt::format("10.0.0.{}", children_.clusters.size());
      json::Value pod = ReadyPod(write.target.name + "-head-a", "head", kHeadGroup);
      children_.pods.push_back(pod.SetPath({"metadata", "labels", kClusterLabel}, write.target.name)
                                   .SetPath({"status", "podIP"}, address));
    }
    for (json::Value& object : plural == "pods" ? children_.pods : children_.clusters) {
      const json::Value changed = write.body["metadata"];
      if (object["metadata"]["name"].AsString() != write.target.name) continue;
      for (const char* kind : {"labels", "annotations"}) {
        for (const auto& [key, value] : changed[kind].members())
          object = object.SetPath({"metadata", kind, key}, value);
      }
    }
    const auto keep = [&](json::Value& service) {
      if (service.IsNull() || !creates) service = write.body;
    };
    if (write.target.name == "s-head-svc") keep(children_.head_service);
    if (write.target.name == "s-serve-svc") keep(children_.serve_service);
  }
  // What Ray Serve says on the cluster of this number, whose head's proxy is healthy.
  void ServeSays(size_t cluster, std::string_view status) {
    const std::string name = children_.clusters[cluster]["metadata"]["name"].Str();
    observations_[name] = Yaml(fmt::format(
        "{{applications: {{app: {{status: {}, message: '', deployments: {{d: {{status: HEALTHY, "
        "message: ''}}}}}}}}, proxies: {{n: {{status: HEALTHY, node_ip: 10.0.0.{}}}}}}}",
        status, cluster + 1));
  }
  // Until nothing is written any more, with the answers that there are.
  void Settle() {
    for (int i = 0; i < 10 && !Run().empty(); ++i) {
    }
  }
  // A service that runs on its first cluster.
  void Start() {
    Run();
    ServeSays(0, "RUNNING");
    Settle();
    ASSERT_EQ(service_["status"]["serviceStatus"].AsString(), "Running");
  }
  std::string ClusterOf(const char* role) {
    return service_["status"][role]["rayClusterName"].Str();
  }
  bool Holds(std::string_view type) {
    return schema::ConditionHolds(service_["status"]["conditions"], type);
  }
  void ChangeCluster() {
    service_ = service_.SetPath({"spec", "rayClusterConfig", "rayVersion"}, "2.54.0");
  }

  json::Value service_ = Yaml(R"(
apiVersion: ray.io/v1
kind: RayService
metadata: {name: s, namespace: d, uid: s1, generation: 1, resourceVersion: "7"}
spec:
  serveConfigV2: "applications: [{name: app, import_path: 'm:a'}]"
  rayClusterConfig:
    headGroupSpec: {template: {spec: {containers: [{name: head, image: i}]}}}
    workerGroupSpecs:
    - groupName: w
      replicas: 1
      template: {spec: {containers: [{name: w, image: i}]}}
)");
  ServiceChildren children_;
  client::Observations observations_;
  client::Reconciled pass_;
  Time now_ = kNow;
};

TEST_F(ServicePassTest, MakesAClusterPutsTheApplicationsAndSwitchesWhenTheyRun) {
  const std::vector<std::string> first = Run();
  ASSERT_EQ(first.size(), 1u);
  EXPECT_TRUE(first[0].starts_with("create rayclusters s-")) << first[0];
  const std::string cluster = ClusterOf("pendingServiceStatus");
  EXPECT_EQ(first[0], "create rayclusters " + cluster);
  EXPECT_FALSE(Holds("Ready"));
  EXPECT_TRUE(Run().empty());
  ASSERT_EQ(pass_.probes.size(), 1u);
  EXPECT_TRUE(pass_.probes[0].path.ends_with("-head-svc%3A8265/proxy/api/serve/applications/"));
  observations_[cluster] = Yaml("{applications: {}, proxies: {}}");
  const std::vector<std::string> put = Run();
  EXPECT_EQ(put[0],
            fmt::format("update services {}-head-svc:8265/proxy/api/serve/applications/", cluster));
  EXPECT_EQ(json::Write(pass_.writes[1].body),
            R"({"applications":[{"name":"app","import_path":"m:a"}]})");
  ServeSays(0, "DEPLOYING");
  Settle();
  EXPECT_EQ(children_.pods[0]["metadata"]["labels"]["ray.io/serve"].AsString(), "true");
  EXPECT_TRUE(children_.serve_service.IsNull()) << "not before they run";
  ServeSays(0, "RUNNING");
  Settle();
  EXPECT_EQ(ClusterOf("activeServiceStatus"), cluster);
  EXPECT_EQ(ClusterOf("pendingServiceStatus"), "");
  EXPECT_TRUE(Holds("Ready"));
  EXPECT_EQ(service_["status"]["numServeEndpoints"].AsInt(), 1);
  EXPECT_EQ(children_.serve_service["spec"]["selector"]["ray.io/cluster"].AsString(), cluster);
  EXPECT_EQ(children_.head_service["spec"]["selector"]["ray.io/node-type"].AsString(), "head");
  EXPECT_EQ(
      service_["status"]["activeServiceStatus"]["applicationStatuses"]["app"]["status"].AsString(),
      "RUNNING");
  EXPECT_EQ(pass_.look_again_at, kNow + kCalmPeriod);
}

TEST_F(ServicePassTest, AChangeOfTheApplicationsGoesIntoTheSameCluster) {
  Start();
  service_ = service_.SetPath({"spec", "serveConfigV2"},
                              "applications: [{name: app, import_path: 'm:b'}]");
  const std::vector<std::string> writes = Run();
  EXPECT_EQ(std::ranges::count_if(
                writes, [](const std::string& write) { return write.starts_with("update serv"); }),
            1);
  EXPECT_EQ(children_.clusters.size(), 1u);
}

TEST_F(ServicePassTest, AHeadThatLostItsApplicationsGetsThemAgain) {
  Start();
  observations_.begin()->second = Yaml("{applications: {}, proxies: {}}");
  const std::vector<std::string> writes = Run();
  ASSERT_FALSE(writes.empty());
  EXPECT_TRUE(writes[0].ends_with("/proxy/api/serve/applications/")) << writes[0];
}

// kuberay#1559: requests go to the old cluster until the new one answers.
TEST_F(ServicePassTest, AChangeOfTheClusterMakesAnotherAndSwitchesBothServicesTogether) {
  Start();
  const std::string first = ClusterOf("activeServiceStatus");
  ChangeCluster();
  Run();
  ASSERT_EQ(children_.clusters.size(), 2u);
  const std::string second = ClusterOf("pendingServiceStatus");
  EXPECT_NE(second, first);
  EXPECT_TRUE(Holds("UpgradeInProgress"));
  ServeSays(1, "DEPLOYING");
  Settle();
  EXPECT_EQ(children_.serve_service["spec"]["selector"]["ray.io/cluster"].AsString(), first);
  ServeSays(1, "RUNNING");
  Run();
  EXPECT_EQ(children_.serve_service["spec"]["selector"]["ray.io/cluster"].AsString(), second);
  EXPECT_EQ(children_.head_service["spec"]["selector"]["ray.io/cluster"].AsString(), second);
  EXPECT_EQ(ClusterOf("activeServiceStatus"), second);
  Settle();
  EXPECT_FALSE(Holds("UpgradeInProgress"));
  now_ = kNow + seconds(kDefaultDeletionDelaySeconds - 1);
  for (const std::string& write : Run()) EXPECT_FALSE(write.starts_with("delete")) << write;
  now_ = kNow + seconds(kDefaultDeletionDelaySeconds);
  const std::vector<std::string> writes = Run();
  EXPECT_EQ(std::ranges::count(writes, "delete rayclusters " + first), 1);
}

TEST_F(ServicePassTest, SizesChangeTheClusterInPlace) {
  Start();
  const std::string cluster = ClusterOf("activeServiceStatus");
  const json::Value groups = service_["spec"]["rayClusterConfig"]["workerGroupSpecs"];
  service_ = service_.SetPath({"spec", "rayClusterConfig", "workerGroupSpecs"},
                              groups.SetAt(0, groups.At(0).Set("replicas", 3)));
  EXPECT_EQ(Run(), (std::vector<std::string>{"patch rayclusters " + cluster}));
  EXPECT_EQ(children_.clusters.size(), 1u);
}

TEST_F(ServicePassTest, WithoutUpgradesTheClusterStays) {
  Start();
  service_ = service_.SetPath({"spec", "upgradeStrategy"}, Yaml("{type: None}"));
  ChangeCluster();
  Settle();
  EXPECT_EQ(children_.clusters.size(), 1u);
}

TEST_F(ServicePassTest, AClusterThatSomebodyDeletedIsMadeAgain) {
  Start();
  children_.clusters.clear();
  children_.pods.clear();
  const std::vector<std::string> writes = Run();
  ASSERT_FALSE(writes.empty());
  EXPECT_TRUE(writes[0].starts_with("create rayclusters s-")) << writes[0];
  EXPECT_FALSE(Holds("Ready"));
}

TEST_F(ServicePassTest, TheHeadTakesNoRequestsIfToldSo) {
  Start();
  service_ = service_.SetPath({"spec", "excludeHeadPodFromServeSvc"}, true);
  Settle();
  EXPECT_EQ(children_.pods[0]["metadata"]["labels"]["ray.io/serve"].AsString(), "false");
  EXPECT_FALSE(Holds("Ready"));
}

TEST_F(ServicePassTest, ADashboardThatCannotBeReachedChangesNothing) {
  Start();
  observations_.begin()->second =
      client::FailureOf(Error(Reason::kServiceUnavailable, "no endpoints available"));
  EXPECT_TRUE(Run().empty());
  EXPECT_TRUE(Holds("Ready"));
}

}  // namespace
}  // namespace muster::ray
