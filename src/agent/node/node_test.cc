#include <gtest/gtest.h>

#include "agent/node/node_object.h"
#include "agent/node/node_registrar.h"
#include "client/fake_api.h"
#include "client/in_process_transport.h"
#include "json/parse.h"
#include "loop/sim_loop.h"
#include "schema/conditions.h"

namespace muster::agent {
namespace {

NodeFacts Facts(int gpus = 2) {
  NodeFacts facts;
  facts.name = "n1";
  facts.address = "1.2.3.4";
  facts.pod_cidr = "10.42.0.0/24";
  facts.version = "v1.32.0";
  facts.cpu_count = 8;
  facts.memory_bytes = int64_t{16} << 30;
  facts.storage_bytes = int64_t{100} << 30;
  facts.architecture = "amd64";
  facts.devices = SimulatedDevices(gpus, "H100");
  facts.devices_simulated = gpus > 0;
  return facts;
}

TEST(NodeObject, SaysWhatTheMachineHas) {
  const json::Value node = NewNode(Facts(), Time(seconds(0)));
  EXPECT_EQ(node["metadata"]["labels"]["kubernetes.io/hostname"].AsString(), "n1");
  EXPECT_EQ(node["metadata"]["labels"]["nvidia.com/gpu.product"].AsString(), "Simulated-H100");
  EXPECT_EQ(node["metadata"]["labels"]["muster.dev/simulated-gpus"].AsString(), "true");
  const json::Value devices =
      *json::Parse(node["metadata"]["annotations"]["muster.dev/devices"].AsString());
  EXPECT_EQ(devices["nvidia.com/gpu"].At(1)["id"].AsString(), "GPU-sim-1");
  EXPECT_EQ(cluster::NodeDevices(node).size(), 2u);
  EXPECT_EQ(node["status"]["capacity"]["nvidia.com/gpu"].AsString(), "2");
  EXPECT_EQ(node["status"]["capacity"]["memory"].AsString(), "16777216Ki");
  EXPECT_EQ(node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"].AsInt(), 10250);
  EXPECT_EQ(node["spec"]["podCIDR"].AsString(), "10.42.0.0/24");
}

TEST(NodeObject, ShowsWhatItDoesNotKeep) {
  NodeFacts facts = Facts();
  EXPECT_TRUE(schema::FindCondition(NewNode(facts, Time(seconds(0)))["status"]["conditions"],
                                    "LimitsNotEnforced")
                  .IsNull());
  facts.limitations.push_back({"LimitsNotEnforced", "NoDelegatedCgroup", "limits of memory ..."});
  const json::Value node = NewNode(facts, Time(seconds(0)));
  const json::Value& condition =
      schema::FindCondition(node["status"]["conditions"], "LimitsNotEnforced");
  EXPECT_EQ(condition["status"].AsString(), "True");
  EXPECT_EQ(condition["reason"].AsString(), "NoDelegatedCgroup");
  EXPECT_TRUE(schema::ConditionHolds(node["status"]["conditions"], "Ready"));
}

TEST(NodeObject, KeepsWhatOthersSayOfTheNodeAndNothingOldOfItsOwn) {
  const json::Value before = json::Obj(
      {{"conditions",
        json::List({json::Obj({{"type", "KernelDeadlock"}, {"status", "False"}, {"message", "m"}}),
                    json::Obj({{"type", "Ready"}, {"status", "Unknown"}}),
                    json::Obj({{"type", "NoOutsideNetwork"}, {"status", "True"}}),
                    json::Obj({{"type", "AcceleratedHardwareReady"}, {"status", "False"}})})}});
  const json::Value status = NodeStatus(Facts(), before, Time(seconds(0)));
  const json::Value& conditions = status["conditions"];
  EXPECT_EQ(schema::FindCondition(conditions, "KernelDeadlock"), before["conditions"].At(0));
  EXPECT_TRUE(schema::ConditionHolds(conditions, "Ready"));
  EXPECT_TRUE(schema::FindCondition(conditions, "NoOutsideNetwork").IsNull());
  EXPECT_TRUE(schema::FindCondition(conditions, "AcceleratedHardwareReady").IsNull());
  EXPECT_EQ(conditions.size(), 5u);
}

TEST(NodeObject, TheRealMachineHasFacts) {
  const NodeFacts facts = GatherNodeFacts("/");
  EXPECT_GT(facts.cpu_count, 0);
  EXPECT_GT(facts.memory_bytes, 0);
  EXPECT_GT(facts.storage_bytes, 0);
  EXPECT_FALSE(facts.kernel_version.empty());
}

struct Server {
  SimLoop loop;
  client::FakeApi api{loop};
  client::InProcessTransport transport{loop, api, {"", "node", {"system:masters"}}};
  client::ApiClient client{loop, transport, "node"};
  const json::Value& Node() { return *api.Find("/api/v1/nodes", "", "n1"); }
};

TEST(NodeRegistrar, RegistersOnceAndKeepsTheLease) {
  Server s;
  NodeRegistrar registrar(s.loop, s.client, Facts());
  int registered = 0;
  registrar.Start([&] { ++registered; });
  s.loop.RunFor(seconds(35));
  EXPECT_EQ(registered, 1);
  EXPECT_EQ(s.Node()["status"]["conditions"].At(3)["reason"].AsString(), "KubeletReady");
  const json::Value& lease =
      *s.api.Find("/apis/coordination.k8s.io/v1/leases", "kube-node-lease", "n1");
  EXPECT_EQ(lease["spec"]["holderIdentity"].AsString(), "n1");
  const Time renewed = *ParseTime(lease["spec"]["renewTime"].AsString());
  EXPECT_LE(s.loop.Now() - renewed, kLeasePeriod);
}

TEST(NodeRegistrar, TakesOverItsOldNodeAndKeepsWhatOthersWrote) {
  Server s;
  json::Value old = NewNode(Facts(4), s.loop.Now() - hours(1));
  old = old.SetPath({"metadata", "labels", "team"}, "vision")
            .SetPath({"spec", "taints"}, json::List({json::Obj({{"key", "mine"}})}));
  s.api.Put("/api/v1/nodes", old);
  NodeRegistrar registrar(s.loop, s.client, Facts(0));
  registrar.Start([] {});
  s.loop.RunFor(seconds(1));
  EXPECT_EQ(s.Node()["metadata"]["labels"]["team"].AsString(), "vision");
  EXPECT_EQ(s.Node()["spec"]["taints"].At(0)["key"].AsString(), "mine");
  EXPECT_FALSE(s.Node()["metadata"]["labels"].Has("nvidia.com/gpu.product"));
  EXPECT_FALSE(s.Node()["status"]["capacity"].Has("nvidia.com/gpu")) << "GPUs of the earlier run";
}

TEST(NodeRegistrar, AFaultMakesTheNodeNotReadyAndKeepsTheLease) {
  Server s;
  NodeRegistrar registrar(s.loop, s.client, Facts());
  int registered = 0;
  registrar.Start([&] { ++registered; });
  s.loop.RunFor(seconds(5));
  registrar.ReportFault("SpawnerGone", "restart muster");
  s.loop.RunFor(seconds(1));
  const auto ready = [&] { return s.Node()["status"]["conditions"].At(3); };
  EXPECT_EQ(ready()["status"].AsString(), "False");
  EXPECT_EQ(ready()["reason"].AsString(), "SpawnerGone");
  EXPECT_EQ(ready()["message"].AsString(), "restart muster");
  EXPECT_EQ(*ParseTime(ready()["lastTransitionTime"].AsString()), s.loop.Now() - seconds(1));
  s.loop.RunFor(minutes(11));
  EXPECT_EQ(ready()["status"].AsString(), "False");
  EXPECT_EQ(registered, 1);
  const json::Value& lease =
      *s.api.Find("/apis/coordination.k8s.io/v1/leases", "kube-node-lease", "n1");
  EXPECT_LE(s.loop.Now() - *ParseTime(lease["spec"]["renewTime"].AsString()), kLeasePeriod);
}

// The node controller gave it up while it could not write.
TEST(NodeRegistrar, WhoWasTakenForDeadSaysThatHeLives) {
  Server s;
  NodeRegistrar registrar(s.loop, s.client, Facts());
  registrar.Start([] {});
  s.loop.RunFor(seconds(12));
  json::Value node = s.Node();
  json::Array conditions;
  for (const json::Value& condition : node["status"]["conditions"].items()) {
    const bool ready = condition["type"].AsString() == "Ready";
    conditions.push_back(ready ? condition.Set("status", "Unknown") : condition);
  }
  s.api.Put("/api/v1/nodes", node.SetPath({"status", "conditions"}, std::move(conditions)));
  s.loop.RunFor(kLeasePeriod);
  EXPECT_TRUE(schema::ConditionHolds(s.Node()["status"]["conditions"], "Ready"));
}

TEST(NodeRegistrar, TriesAgainUntilTheServerAnswers) {
  Server s;
  bool down = true;
  s.api.before_handle = [&](const net::Request&, const net::ResponseWriterPtr& writer) {
    if (down) client::FakeApi::SendError(*writer, 503, "ServiceUnavailable", "starting");
    return !down;
  };
  NodeRegistrar registrar(s.loop, s.client, Facts());
  bool registered = false;
  registrar.Start([&] { registered = true; });
  s.loop.RunFor(seconds(5));
  EXPECT_FALSE(registered);
  down = false;
  s.loop.RunFor(seconds(1));
  EXPECT_TRUE(registered);
}

}  // namespace
}  // namespace muster::agent
