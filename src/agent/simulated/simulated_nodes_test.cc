#include "agent/simulated/simulated_nodes.h"

#include <gtest/gtest.h>

#include "base/go_duration.h"
#include "client/fake_api.h"
#include "client/in_process_transport.h"
#include "json/parse.h"
#include "loop/sim_loop.h"
#include "schema/conditions.h"

namespace muster::agent {
namespace {

struct Cluster {
  explicit Cluster(int count) : nodes({.count = count}, loop, client, informers, Rng(1)) {
    nodes.Start();
    informers.Start();
    loop.RunFor(seconds(1));
  }
  void Pod(const std::string& name, const std::string& annotations = "{}") {
    api.Put("/api/v1/pods",
            *json::Parse(R"({"metadata":{"namespace":"d","name":")" + name + R"(","annotations":)" +
                         annotations +
                         R"(},"spec":{"nodeName":"simulated-0001","containers":[{"name":"c"}]}})"));
  }
  std::string Phase(const std::string& name) {
    const json::Value* pod = api.Find("/api/v1/pods", "d", name);
    return pod == nullptr ? "gone" : (*pod)["status"]["phase"].Str();
  }

  SimLoop loop;
  client::FakeApi api{loop};
  client::InProcessTransport transport{loop, api, {"", "sim", {"system:masters"}}};
  client::ApiClient client{loop, transport, "sim"};
  client::InformerSet informers{client};
  SimulatedNodes nodes;
};

TEST(SimulatedNodes, RegisterPlainlyLabelled) {
  Cluster c(200);
  EXPECT_EQ(c.api.Count("/api/v1/nodes"), 200u);
  const json::Value& node = *c.api.Find("/api/v1/nodes", "", "simulated-0007");
  EXPECT_EQ(node["metadata"]["labels"]["muster.dev/simulated"].AsString(), "true");
  EXPECT_EQ(node["metadata"]["labels"]["muster.dev/simulated-gpus"].AsString(), "true");
  EXPECT_EQ(node["status"]["capacity"]["nvidia.com/gpu"].AsString(), "8");
  EXPECT_EQ(node["status"]["capacity"]["cpu"].AsString(), "64");
}

TEST(SimulatedNodes, RenewTheirLeases) {
  Cluster c(30);
  c.loop.RunFor(seconds(11));
  EXPECT_EQ(c.api.Count("/apis/coordination.k8s.io/v1/leases"), 30u);
}

TEST(SimulatedNodes, WriteEachLeaseOnceInAPeriodAndNothingElse) {
  for (const int count : {1, 3, 30, 101, 250}) {
    Cluster c(count);
    c.loop.RunFor(seconds(15));
    const size_t before = c.api.requests.size();
    c.loop.RunFor(10 * kSimulatedLeasePeriod);
    const auto expected = static_cast<double>(10 * count);
    EXPECT_NEAR(static_cast<double>(c.api.requests.size() - before), expected, 0.02 * expected + 1)
        << count << " nodes";
  }
}

TEST(SimulatedNodes, PodsRunEndAndGo) {
  Cluster c(2);
  c.Pod("stays");
  c.Pod("ends", R"({"muster.dev/simulated-duration":"30s"})");
  c.loop.RunFor(seconds(1));
  EXPECT_EQ(c.Phase("stays"), "Running");
  EXPECT_EQ(c.Phase("ends"), "Running");
  c.loop.RunFor(seconds(31));
  EXPECT_EQ(c.Phase("stays"), "Running");
  EXPECT_EQ(c.Phase("ends"), "Succeeded");
  c.api.Put("/api/v1/pods",
            c.api.Find("/api/v1/pods", "d", "stays")
                ->SetPath({"metadata", "deletionTimestamp"}, "2026-01-01T00:00:00Z"));
  c.loop.RunFor(seconds(1));
  EXPECT_EQ(c.Phase("stays"), "gone");
}

// As after a restart: the node lifecycle had given them up.
TEST(SimulatedNodes, AreReadyAgainWithTheirPods) {
  Cluster c(2);
  c.Pod("p");
  c.loop.RunFor(seconds(1));
  const auto ready = [&](const char* collection, const char* ns, const char* name) {
    return schema::ConditionHolds((*c.api.Find(collection, ns, name))["status"]["conditions"],
                                  "Ready");
  };
  const auto say = [&](const char* collection, const char* ns, const char* name,
                       const char* status) {
    const json::Value condition = json::Obj({{"type", "Ready"}, {"status", status}});
    c.api.Put(collection, c.api.Find(collection, ns, name)
                              ->SetPath({"status", "conditions"}, json::List({condition})));
  };
  ASSERT_TRUE(ready("/api/v1/pods", "d", "p"));
  say("/api/v1/pods", "d", "p", "False");
  say("/api/v1/nodes", "", "simulated-0001", "Unknown");
  c.loop.RunFor(seconds(3));
  EXPECT_TRUE(ready("/api/v1/nodes", "", "simulated-0001"));
  EXPECT_TRUE(ready("/api/v1/pods", "d", "p"));
}

TEST(SimulatedNodes, LetGoOfVolumesThatAreOnlySaidToBeThere) {
  Cluster c(2);
  EXPECT_NE((*c.api.Find("/api/v1/nodes", "",
                         "simulated-0001"))["metadata"]["annotations"]["muster.dev/local-volumes"],
            json::Value());
  const auto put = [&](const std::string& name, const std::string& node,
                       const std::string& more_finalizers = "") {
    c.api.Put("/api/v1/persistentvolumes",
              *json::Parse(R"({"metadata":{"name":")" + name +
                           R"(","deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":[)" +
                           more_finalizers +
                           R"("muster.dev/local-path"]},"spec":{"nodeAffinity":{"required":)"
                           R"({"nodeSelectorTerms":[{"matchExpressions":[{"key":)"
                           R"("kubernetes.io/hostname","operator":"In","values":[")" +
                           node + R"("]}]}]}}}})"));
  };
  put("ours", "simulated-0001");
  put("held", "simulated-0001", R"("kubernetes.io/pv-protection",)");
  put("elsewhere", "n1");
  c.loop.RunFor(seconds(1));
  EXPECT_EQ(c.api.Find("/api/v1/persistentvolumes", "", "ours"), nullptr);
  EXPECT_NE(c.api.Find("/api/v1/persistentvolumes", "", "held"), nullptr);
  EXPECT_NE(c.api.Find("/api/v1/persistentvolumes", "", "elsewhere"), nullptr);
}

// As the autoscaler makes them, and as spot nodes go.
TEST(SimulatedNodes, KeepThoseOfNodePoolsAliveWhileTheyAreThere) {
  Cluster c(0);
  c.api.Put("/api/v1/nodes",
            *json::Parse(R"({"metadata":{"name":"simulated-0001","labels":{"muster.dev/simulated":)"
                         R"("true","karpenter.sh/nodepool":"gpu"}},"spec":{},"status":{"capacity":)"
                         R"({"cpu":"4"},"conditions":[{"type":"Ready","status":"Unknown"}]}})"));
  c.Pod("p");
  c.loop.RunFor(seconds(12));
  const json::Value& node = *c.api.Find("/api/v1/nodes", "", "simulated-0001");
  EXPECT_TRUE(schema::ConditionHolds(node["status"]["conditions"], "Ready"));
  EXPECT_EQ(node["status"]["capacity"]["cpu"].AsString(), "4");
  EXPECT_EQ(c.Phase("p"), "Running");
  EXPECT_EQ(c.api.Count("/apis/coordination.k8s.io/v1/leases"), 1u);
  c.api.Remove("/api/v1/nodes", "", "simulated-0001");
  c.loop.RunFor(seconds(1));
  const size_t requests = c.api.requests.size();
  c.loop.RunFor(minutes(1));
  EXPECT_EQ(c.api.requests.size(), requests);
  EXPECT_EQ(c.api.Count("/api/v1/nodes"), 0u);
}

TEST(SimulatedNodes, LeaveOtherPodsAlone) {
  Cluster c(1);
  c.Pod("elsewhere");
  c.loop.RunFor(seconds(1));
  EXPECT_EQ(c.Phase("elsewhere"), "");
}

TEST(GoDuration, ReadsWhatGoWrites) {
  EXPECT_EQ(ParseGoDuration("30s"), seconds(30));
  EXPECT_EQ(ParseGoDuration("1h30m"), minutes(90));
  EXPECT_EQ(ParseGoDuration("250ms"), milliseconds(250));
  for (const char* bad : {"", "30", "s", "-1s", "1d", "9999999999s", "1 s"}) {
    EXPECT_FALSE(ParseGoDuration(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace muster::agent
