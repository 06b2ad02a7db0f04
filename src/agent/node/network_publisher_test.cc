// hostPorts of real pods: from the API objects to who is reached at the node.

#include "agent/node/network_publisher.h"

#include <set>

#include "agent/network/host_network.h"
#include "agent/pod_machine_test_support.h"

namespace muster::agent {
namespace {

const Ipv4 kNode = *Ipv4::Parse("10.42.0.1"), kLoopback{INADDR_LOOPBACK};

// The publisher of a machine's agent.
class Published {
 public:
  explicit Published(Machine& machine) : machine_(machine) {
    NetworkPublisher::Options options;
    options.node_name = "n1";
    options.cluster_domain = "cluster.local";
    options.table_file = machine.data_dir + "/services";
    options.health_io = &machine.node->io;
    PodManager& manager = machine.node->manager;
    publisher_ = std::make_unique<NetworkPublisher>(
        machine.loop, *machine.pool, machine.node->informers, machine.node->spawner,
        std::move(options),
        NetworkPublisher::LocalPods{[&manager] { return manager.PodsWithAddresses(); },
                                    [&manager] { return manager.PodsWithHostPorts(); }});
    machine.node->context.on_addresses_changed = [this] { publisher_->LocalPodsChanged(); };
    // The informers that it asked for are new.
    machine.node->informers.Start();
    const Status status = publisher_->Start();
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
  ~Published() {
    if (machine_.node != nullptr) machine_.node->context.on_addresses_changed = [] {};
  }

 private:
  Machine& machine_;
  std::unique_ptr<NetworkPublisher> publisher_;
};

std::string Server(const std::string& name, const std::string& port) {
  return OneContainer(name,
                      "exec python3 -c 'import socket\n"
                      "s = socket.create_server((\"\", 80))\n"
                      "while True: s.accept()[0].sendall(b\"" +
                          name + "\")'",
                      "Never", R"(,"ports":[{"containerPort":80,"protocol":"TCP",)" + port + "}]");
}

// What the server says; "" if nobody answers.
std::string Ask(Ipv4 address, uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval limit{.tv_sec = 2};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  const sockaddr_in there = ToSocketAddress(address, port);
  char text[16] = {};
  ssize_t size = 0;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0)
    size = recv(fd, text, sizeof text, 0);
  close(fd);
  return {text, static_cast<size_t>(std::max<ssize_t>(size, 0))};
}

TEST(NetworkPublisher, AHostPortLeadsToItsPodAsLongAsThatIsThere) {
  InNetworkNamespace([] {
    ASSERT_TRUE(EnsureHost({}).ok());
    Machine m;
    auto published = std::make_unique<Published>(m);
    const auto says = [&](const std::string& name, Ipv4 address = kNode) {
      return m.Until([&] { return Ask(address, 8080) == name; });
    };
    m.Create(Server("one", R"("hostPort":8080)"));
    EXPECT_TRUE(says("one"));
    EXPECT_TRUE(says("one", kLoopback));
    // Past the scheduler: refused, and the first one keeps it.
    m.Create(Server("two", R"("hostPort":8080,"hostIP":"10.42.0.1")"));
    EXPECT_TRUE(m.UntilPhase("two", "Failed"));
    EXPECT_EQ(m.Pod("two")["status"]["reason"].AsString(), "NodePorts");
    EXPECT_EQ(m.Pod("two")["status"]["message"].AsString(),
              "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for "
              "the requested pod ports");
    EXPECT_EQ(Ask(kNode, 8080), "one");
    // Nothing of it changes while no agent runs, nor when the next one begins.
    published.reset();
    bool always = true;
    m.RestartAgent([&] { always = Ask(kNode, 8080) == "one"; });
    published = std::make_unique<Published>(m);
    m.Create(Server("aaa", R"("hostPort":8080)"));  // seen before the one that has the port
    EXPECT_TRUE(m.Until([&] {
      always = always && Ask(kNode, 8080) == "one";
      return m.Phase("aaa") == "Failed";
    }));
    EXPECT_TRUE(always);
    m.api->Remove(kPods, "d", "one");
    EXPECT_TRUE(m.Until([] { return Ask(kNode, 8080).empty(); }));
    m.Create(Server("next", R"("hostPort":8080)"));
    EXPECT_TRUE(says("next"));
  });
}

// A pod whose object was forced away ends for a while; its port is free at once.
TEST(NetworkPublisher, ThePortOfAPodThatIsGoneIsFree) {
  InNetworkNamespace([] {
    ASSERT_TRUE(EnsureHost({}).ok());
    Machine m;
    Published published(m);
    m.Create(Server("one", R"("hostPort":8080)"));
    EXPECT_TRUE(m.Until([] { return Ask(kNode, 8080) == "one"; }));
    m.api->Remove(kPods, "d", "one");
    m.Create(Server("two", R"("hostPort":8080)"));
    EXPECT_TRUE(m.Until([] { return Ask(kNode, 8080) == "two"; }));
    EXPECT_TRUE(m.UntilPhase("two", "Running"));
  });
}

constexpr const char* kNodes = "/api/v1/nodes";
constexpr const char* kServices = "/api/v1/services";
constexpr const char* kSlices = "/apis/discovery.k8s.io/v1/endpointslices";

// The whole answer to a request of a load balancer; "" if nobody listens.
std::string AskHealth(Machine& m, uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in there = ToSocketAddress(kNode, port);
  std::string text;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0) {
    const std::string_view request = "GET /healthz HTTP/1.1\r\nHost: n1\r\n\r\n";
    EXPECT_EQ(send(fd, request.data(), request.size(), 0), static_cast<ssize_t>(request.size()));
    char bytes[2000];
    EXPECT_TRUE(m.Until([&] {
      const ssize_t size = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
      if (size > 0) text.append(bytes, static_cast<size_t>(size));
      const bool closed = size == 0 || (size < 0 && errno != EAGAIN);
      return closed || text.ends_with("\n}");
    }));
  }
  close(fd);
  (void)m.Until([] { return false; }, milliseconds(20));  // others have their turn
  return text;
}

// AskHealth() lets the loop run itself.
bool Repeatedly(const std::function<bool()>& done) {
  const Time deadline = RealClock().Wall() + seconds(20);
  while (!done()) {
    if (RealClock().Wall() > deadline) return false;
  }
  return true;
}

void PutBalanced(Machine& m, const std::string& policy, int port) {
  const json::Value service = *json::Parse(
      R"({"metadata":{"namespace":"d","name":"web"},"spec":{
         "type":"LoadBalancer","clusterIP":"10.43.0.7","ports":[{"port":80}]}})");
  m.api->Put(kServices, service.SetPath({"spec", "externalTrafficPolicy"}, policy)
                            .SetPath({"spec", "healthCheckNodePort"}, port));
}

void PutEndpoints(Machine& m, const std::string& endpoints) {
  m.api->Put(kSlices, *json::Parse(R"({"metadata":{"namespace":"d","name":"web-1","labels":{
                                      "kubernetes.io/service-name":"web"}},"addressType":"IPv4",
                                      "ports":[{"port":8080},{"name":"b","port":8081}],
                                      "endpoints":[)" +
                                   endpoints + "]}"));
}

TEST(NetworkPublisher, LoadBalancersHearWhetherTheNodeHasPods) {
  InNetworkNamespace([] {
    ASSERT_TRUE(EnsureHost({}).ok());
    Machine m;
    Published published(m);
    PutBalanced(m, "Local", 31000);
    PutEndpoints(m, R"({"addresses":["10.42.0.2"],"nodeName":"n1"},
                       {"addresses":["10.42.0.3"],"nodeName":"n1"},
                       {"addresses":["10.42.0.4"],"nodeName":"n1","conditions":{"ready":false}},
                       {"addresses":["10.42.1.2"],"nodeName":"n2"})");
    const auto says = [&m](uint16_t port, std::string_view what) {
      return Repeatedly([&] { return AskHealth(m, port).find(what) != std::string::npos; });
    };
    EXPECT_TRUE(says(31000, "\"localEndpoints\": 2"));
    const std::string answer = AskHealth(m, 31000);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
    for (const char* part :
         {"Content-Type: application/json\r\n", "X-Content-Type-Options: nosniff\r\n",
          "X-Load-Balancing-Endpoint-Weight: 2\r\n",
          "{\n\t\"service\": {\n\t\t\"namespace\": \"d\",\n\t\t\"name\": \"web\"\n\t},\n"
          "\t\"localEndpoints\": 2,\n\t\"serviceProxyHealthy\": true\n}"})
      EXPECT_NE(answer.find(part), std::string::npos) << part << "\n" << answer;
    PutEndpoints(m, R"({"addresses":["10.42.1.2"],"nodeName":"n2"})");
    EXPECT_TRUE(says(31000, "HTTP/1.1 503 Service Unavailable"));
    EXPECT_TRUE(says(31000, "X-Load-Balancing-Endpoint-Weight: 0"));
    // Another port, and none.
    PutBalanced(m, "Local", 31001);
    EXPECT_TRUE(says(31001, "\"localEndpoints\": 0"));
    EXPECT_EQ(AskHealth(m, 31000), "");
    PutBalanced(m, "Cluster", 31001);
    EXPECT_TRUE(Repeatedly([&] { return AskHealth(m, 31001).empty(); }));
  });
}

json::Value NodeInZone(const std::string& zone) {
  const json::Value node = *json::Parse(R"({"metadata":{"name":"n1","labels":{}}})");
  return node.SetPath({"metadata", "labels", "topology.kubernetes.io/zone"}, zone);
}

TEST(NetworkPublisher, HintsCountForTheZoneOfTheNodeWhichMayChange) {
  InNetworkNamespace([] {
    ASSERT_TRUE(EnsureHost({}).ok());
    Machine m;
    m.api->Put(kNodes, NodeInZone("west"));
    Published published(m);
    m.Create(Server("one", R"("name":"http")"));
    m.Create(Server("two", R"("name":"http")"));
    ASSERT_TRUE(m.UntilPhase("one", "Running"));
    ASSERT_TRUE(m.UntilPhase("two", "Running"));
    m.api->Put(kServices, *json::Parse(R"({"metadata":{"namespace":"d","name":"web"},"spec":{
                 "type":"NodePort","clusterIP":"10.43.0.7",
                 "ports":[{"port":80,"nodePort":30080}]}})"));
    const auto put_endpoints = [&m](const std::string& zone_of_two) {
      const auto endpoint = [&m](const std::string& pod, const std::string& zone) {
        return json::Obj(
            {{"addresses", json::List({m.Pod(pod)["status"]["podIP"]})},
             {"nodeName", "n1"},
             {"hints", json::Obj({{"forZones", json::List({json::Obj({{"name", zone}})})}})}});
      };
      const json::Value slice = *json::Parse(
          R"({"metadata":{"namespace":"d","name":"web-1","labels":{
            "kubernetes.io/service-name":"web"}},"addressType":"IPv4","ports":[{"port":80}]})");
      m.api->Put(kSlices, slice.Set("endpoints", json::List({endpoint("one", "west"),
                                                             endpoint("two", zone_of_two)})));
    };
    // Who answers to twenty requests.
    const auto says = [&](const std::set<std::string>& wanted) {
      return m.Until([&] {
        std::set<std::string> names;
        for (int i = 0; i < 20; ++i) names.insert(Ask(kNode, 30080));
        return names == wanted;
      });
    };
    put_endpoints("east");
    EXPECT_TRUE(says({"one"}));
    m.api->Put(kNodes, NodeInZone("east"));
    EXPECT_TRUE(says({"two"}));
    m.api->Put(kNodes, NodeInZone("north"));
    EXPECT_TRUE(says({"one", "two"}));
    m.api->Put(kNodes, NodeInZone("west"));
    EXPECT_TRUE(says({"one"}));
    put_endpoints("west");
    EXPECT_TRUE(says({"one", "two"}));
  });
}

TEST(NetworkPublisher, AHealthPortThatIsTakenIsTriedAgain) {
  InNetworkNamespace([] {
    ASSERT_TRUE(EnsureHost({}).ok());
    Machine m;
    Published published(m);
    const int somebody = Listen(31000);
    PutBalanced(m, "Local", 31000);
    EXPECT_TRUE(m.Until([&] {
      return m.node->informers.Get(client::resources::kServices).Find({"d", "web"}) != nullptr;
    }));
    close(somebody);
    EXPECT_TRUE(Repeatedly([&] { return !AskHealth(m, 31000).empty(); }));
  });
}

}  // namespace
}  // namespace muster::agent
