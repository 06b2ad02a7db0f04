// hostPorts of real pods: from the API objects to who is reached at the node.

#include "agent/node/network_publisher.h"

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

}  // namespace
}  // namespace muster::agent
