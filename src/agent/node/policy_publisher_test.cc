// Network policies and real pods: from the API objects to what a program in a pod can reach.

#include "agent/node/policy_publisher.h"

#include "agent/network/host_network.h"
#include "agent/network/nft_socket.h"
#include "agent/network/policy_batch.h"
#include "agent/pod_machine_test_support.h"

namespace muster::agent {
namespace {

constexpr const char* kPolicies = "/apis/networking.k8s.io/v1/networkpolicies";
constexpr const char* kNamespaces = "/api/v1/namespaces";

struct PolicyNode {
  explicit PolicyNode(Machine& m) : machine(m) {
    m.api->Put(kNamespaces, *json::Parse(R"({"metadata":{"name":"d","labels":{"team":"one"}}})"));
    publisher = std::make_unique<PolicyPublisher>(
        m.loop, *m.pool, m.node->client, m.node->informers, m.node->pods, m.node->spawner,
        m.node->events,
        PolicyPublisher::Node{.name = "n1",
                              .network = {},
                              .table_file = m.data_dir + "/policies",
                              .pods = [&m] { return m.node->manager.PodsWithAddresses(); },
                              .on_policies_changed = [&m] { m.node->manager.PoliciesChanged(); }});
    m.node->context.policies = publisher.get();
    m.node->context.on_addresses_changed = [this] { publisher->LocalPodsChanged(); };
    publisher->Start();
  }
  ~PolicyNode() {
    machine.node->context.policies = nullptr;
    machine.node->context.on_addresses_changed = [] {};
  }
  Machine& machine;
  std::unique_ptr<PolicyPublisher> publisher;
};

json::Value Policy(const std::string& name, const std::string& spec) {
  return *json::Parse(R"({"metadata":{"namespace":"d","name":")" + name + R"("},"spec":)" + spec +
                      "}");
}

std::string PodWith(const std::string& name, const std::string& script) {
  json::Value pod = *json::Parse(OneContainer(name, script));
  return json::Write(pod.SetPath({"metadata", "labels"}, json::Obj({{"app", name}})));
}

// Says for every try whether it got through to the server, one letter a line.
std::string Client(const std::string& address) {
  return "while true; do timeout 0.3 bash -c 'echo > /dev/tcp/" + address +
         "/8080' 2>/dev/null && echo y || echo n; sleep 0.05; done";
}

constexpr const char* kServer =
    "exec python3 -c 'import socket\n"
    "s = socket.create_server((\"\", 8080))\n"
    "print(\"up\", flush=True)\n"
    "while True: s.accept()'";

TEST(PolicyPublisher, APodWaitsUntilItsPoliciesAreInForce) {
  InNetworkNamespace([] {
    Machine m;  // without the table of the packet filter
    PolicyNode node(m);
    m.Create(PodWith("web", "echo up; sleep 1000"));
    const auto event = [&] {
      for (const auto& [key, object] : m.api->objects) {
        if (object["reason"].AsString() == "FailedCreatePodSandBox") return object["message"].Str();
      }
      return std::string();
    };
    ASSERT_TRUE(m.Until([&] { return !event().empty(); }));
    EXPECT_NE(event().find("Failed to create pod sandbox: network policies: "), std::string::npos)
        << event();
    EXPECT_FALSE(m.ShimOf("web"));
    EXPECT_EQ(m.Phase("web"), "Pending");
    ASSERT_TRUE(EnsureHost({}).ok());
    EXPECT_TRUE(m.UntilPhase("web", "Running"));
  });
}

// The watch of policies is behind that of pods.
TEST(PolicyPublisher, APodWaitsForPoliciesThatTheWatchHasNotSeen) {
  InNetworkNamespace([] {
    Machine m;
    ASSERT_TRUE(EnsureHost({}).ok());
    bool blind = false, watches = false;
    m.api->before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
      if (!request.target.starts_with(kPolicies)) return true;
      if (!blind && (watches || request.target.find("watch=") == std::string::npos)) return true;
      client::FakeApi::SendError(*writer, 503, "ServiceUnavailable", "away");
      return false;
    };
    PolicyNode node(m);
    m.Create(PodWith("first", "true"));
    ASSERT_TRUE(m.UntilPhase("first", "Succeeded"));
    blind = true;
    m.api->Put(kPolicies, Policy("deny", R"({"podSelector":{}})"));
    m.Create(PodWith("web", "sleep 1000"));
    m.Until([] { return false; }, milliseconds(300));
    EXPECT_FALSE(m.ShimOf("web"));
    blind = false;
    watches = true;
    ASSERT_TRUE(m.Until([&] { return m.ShimOf("web").has_value(); }));
    const auto isolated = NftSocket::Open()->ListAddresses(kIsolatedIn);
    ASSERT_TRUE(isolated);
    EXPECT_TRUE(isolated->contains(*Ipv4::Parse(m.Pod("web")["status"]["podIP"].AsString())));
  });
}

TEST(PolicyPublisher, PoliciesComeChangeAndGoUnderRunningPods) {
  InNetworkNamespace([] {
    Machine m;
    ASSERT_TRUE(EnsureHost({}).ok());
    PolicyNode node(m);
    m.api->Put(kPolicies, Policy("deny", R"({"podSelector":{"matchLabels":{"app":"web"}}})"));
    m.Create(PodWith("web", kServer));
    ASSERT_TRUE(m.Until([&] { return m.Log("web") == "up\n"; }));
    m.Create(PodWith("client", Client(m.Pod("web")["status"]["podIP"].Str())));
    const auto ends_with = [&](const std::string& letter) {
      return m.Until([&] { return m.Log("client").ends_with(letter + "\n" + letter + "\n"); });
    };
    EXPECT_TRUE(ends_with("n"));
    EXPECT_EQ(m.Log("client").find('y'), std::string::npos);
    // In force is what a pass has seen, and at this address.
    const json::Value web = m.Pod("web");
    const auto comes_into_force = [&](const json::Value& pod, const std::string& address) {
      return m.Until(
          [&] {
            return node.publisher->Look(pod, address).is == PolicyGuard::Answer::Is::kInForce;
          },
          milliseconds(300));
    };
    const std::string address = web["status"]["podIP"].Str();
    EXPECT_TRUE(comes_into_force(web, address));
    EXPECT_FALSE(comes_into_force(web, "10.42.0.77"));
    EXPECT_FALSE(comes_into_force(web.SetPath({"metadata", "uid"}, "x"), address));
    EXPECT_TRUE(comes_into_force(web.SetPath({"spec", "hostNetwork"}, true), ""));
    m.api->Put(kPolicies, Policy("allow", R"({"podSelector":{},"policyTypes":["Ingress"],
        "ingress":[{"from":[{"podSelector":{"matchLabels":{"app":"client"}}}]}]})"));
    EXPECT_TRUE(ends_with("y"));
    // A label that goes.
    m.api->Put(kPods, m.Pod("client").SetPath({"metadata", "labels"}, json::Obj({{"app", "x"}})));
    EXPECT_TRUE(ends_with("n"));
    m.api->Put(kPolicies, Policy("allow", R"({"podSelector":{},"ingress":[{"from":
        [{"namespaceSelector":{"matchLabels":{"team":"one"}}}]}]})"));
    EXPECT_TRUE(ends_with("y"));
    m.api->Put(kNamespaces, *json::Parse(R"({"metadata":{"name":"d","labels":{"team":"two"}}})"));
    EXPECT_TRUE(ends_with("n"));
    m.api->Remove(kPolicies, "d", "allow");
    m.api->Remove(kPolicies, "d", "deny");
    EXPECT_TRUE(ends_with("y"));
  });
}

}  // namespace
}  // namespace muster::agent
