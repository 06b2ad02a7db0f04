// netlink.h, host_network.h and service_rules.h with real packets, inside network namespaces.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "agent/network/host_network.h"
#include "agent/network/netlink.h"
#include "agent/network/netns_test_support.h"
#include "agent/network/service_rules.h"

namespace muster::agent {
namespace {

using json::List;
using json::Obj;

const Ipv4 kFirst = *Ipv4::Parse("10.42.0.2");
const Ipv4 kSecond = *Ipv4::Parse("10.42.0.3");
const Ipv4 kService = *Ipv4::Parse("10.43.0.10");

void ExpectOk(const Status& status) { EXPECT_TRUE(status.ok()) << status.ToString(); }

std::string HostFile(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

class StateFile {
 public:
  StateFile() {
    std::string name = (std::filesystem::temp_directory_path() / "network-test-XXXXXX").string();
    CHECK(mkdtemp(name.data()) != nullptr);
    folder_ = name;
  }
  ~StateFile() { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ + "/network.state"; }

 private:
  std::string folder_;
};

// A node with two pods.
class Node {
 public:
  Node() {
    config_.state_file = state_.path();
    ExpectOk(EnsureHost(config_));
    Attach(first, kFirst, "one");
    Attach(second, kSecond, "two");
  }
  void Attach(const NetworkNamespace& pod, Ipv4 address, std::string_view uid) {
    PodAttachment attachment;
    attachment.netns_fd = pod.fd();
    attachment.host_interface = HostInterfaceName(uid);
    attachment.bridge = config_.bridge;
    attachment.address = address;
    attachment.gateway = config_.BridgeAddress();
    ExpectOk(netlink_.AttachPod(attachment));
  }
  const NodeNetworkConfig& config() const { return config_; }
  Netlink& netlink() { return netlink_; }

  NetworkNamespace first;
  NetworkNamespace second;

 private:
  StateFile state_;
  NodeNetworkConfig config_;
  Netlink netlink_ = *Netlink::Open();
};

// Runs `body` as a node, without and with the kernel's br_netfilter, which does the translation at
// another place.
template <class Body>
void AsNode(Body body) {
  for (const bool bridge_filter : {false, true}) {
    SCOPED_TRACE(bridge_filter ? "with br_netfilter" : "without br_netfilter");
    InNetworkNamespace([&] {
      std::ofstream("/proc/sys/net/bridge/bridge-nf-call-iptables")
          << (bridge_filter ? "1" : "0") << std::flush;
      body();
    });
  }
}

TEST(HostInterfaceName, FitsAndDiffersByUid) {
  EXPECT_LE(HostInterfaceName("0b7e0f4e-5a7e-4f5c-9d4e-3f1c2b6a7d80").size(),
            kMaxInterfaceNameBytes);
  EXPECT_NE(HostInterfaceName("a"), HostInterfaceName("b"));
  EXPECT_EQ(HostInterfaceName("a"), HostInterfaceName("a"));
}

TEST(FindNft, TheOneBesideTheProgramComesFirst) {
  const StateFile scratch;
  const std::string folder = std::filesystem::path(scratch.path()).parent_path();
  const std::string of_machine = FindNft("");
  EXPECT_EQ(FindNft(folder), of_machine);
  std::ofstream(folder + "/nft") << "#!/bin/sh\n";
  EXPECT_EQ(FindNft(folder), of_machine) << "not a program";
  std::filesystem::permissions(folder + "/nft", std::filesystem::perms::owner_all);
  EXPECT_EQ(FindNft(folder), folder + "/nft");
}

TEST(NodeNetwork, PodsReachEachOtherTheNodeAndThemselves) {
  AsNode([] {
    Node node;
    const int in_second = node.second.Inside([] { return Listen(8080); });
    const int on_node = Listen(8081);
    Ipv4 from;
    node.first.Inside([&] {
      EXPECT_EQ(Connect(kSecond, 8080, in_second, &from), 0);
      EXPECT_EQ(Connect(node.config().BridgeAddress(), 8081), 0);
      const int own = Listen(8082);
      EXPECT_EQ(Connect(kFirst, 8082), 0);
      EXPECT_EQ(Connect(*Ipv4::Parse("127.0.0.1"), 8082), 0);
      close(own);
      return 0;
    });
    EXPECT_EQ(from, kFirst);
    EXPECT_EQ(Connect(kSecond, 8080), 0);  // from the node itself
    close(in_second);
    close(on_node);
  });
}

TEST(NodeNetwork, WhatDoesNotExistIsRefused) {
  AsNode([] {
    Node node;
    EXPECT_EQ(SendDatagram(*Ipv4::Parse("10.42.7.7")), EHOSTUNREACH);
    EXPECT_EQ(Connect(kService, 80), ECONNREFUSED);
    node.first.Inside([&] {
      EXPECT_EQ(SendDatagram(*Ipv4::Parse("10.42.7.7")), EHOSTUNREACH);
      EXPECT_EQ(Connect(kService, 80), ECONNREFUSED);
      EXPECT_EQ(SendDatagram(*Ipv4::Parse("192.0.2.1")), ENETUNREACH);  // no uplink
      return 0;
    });
  });
}

ServicePort Port(std::vector<ServiceEndpoint> endpoints, bool client_affinity = false) {
  return {kService, ServiceProtocol::kTcp, 80, client_affinity, std::move(endpoints)};
}

TEST(NodeNetwork, ServicesLeadToEveryEndpointAndKeepTheClientsAddress) {
  AsNode([] {
    Node node;
    const int in_first = node.first.Inside([] { return Listen(8080); });
    const int in_second = node.second.Inside([] { return Listen(8081); });
    ExpectOk(ApplyNft(ServiceRules(node.config(), {Port({{kFirst, 8080}, {kSecond, 8081}})})));
    NetworkNamespace client;
    node.Attach(client, *Ipv4::Parse("10.42.0.4"), "client");
    const auto count = [&](int listener) {
      int accepted = 0;
      sockaddr_in peer{};
      socklen_t size = sizeof peer;
      for (int fd;
           (fd = accept4(listener, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_NONBLOCK)) >= 0;
           close(fd)) {
        EXPECT_EQ(ntohl(peer.sin_addr.s_addr), Ipv4::Parse("10.42.0.4")->value);
        ++accepted;
      }
      return accepted;
    };
    fcntl(in_first, F_SETFL, O_NONBLOCK);
    fcntl(in_second, F_SETFL, O_NONBLOCK);
    client.Inside([&] {
      for (int i = 0; i < 14; ++i) EXPECT_EQ(Connect(kService, 80), 0);
      return 0;
    });
    const int first = count(in_first);
    const int second = count(in_second);
    EXPECT_EQ(first + second, 14);
    EXPECT_GT(first, 0);
    EXPECT_GT(second, 0);
    EXPECT_EQ(Connect(kService, 80), 0);  // from the node itself
    EXPECT_EQ(Connect(kService, 81), ECONNREFUSED);
  });
}

TEST(NodeNetwork, PodReachesItselfThroughAService) {
  AsNode([] {
    Node node;
    const int in_first = node.first.Inside([] { return Listen(8080); });
    ExpectOk(ApplyNft(ServiceRules(node.config(), {Port({{kFirst, 8080}})})));
    Ipv4 from;
    node.first.Inside([&] {
      EXPECT_EQ(Connect(kService, 80, in_first, &from), 0);
      return 0;
    });
    EXPECT_EQ(from, node.config().BridgeAddress());
  });
}

TEST(NodeNetwork, ClientAffinityStaysWithOneEndpoint) {
  AsNode([] {
    Node node;
    const int in_first = node.first.Inside([] { return Listen(8080); });
    const int in_second = node.second.Inside([] { return Listen(8080); });
    ExpectOk(
        ApplyNft(ServiceRules(node.config(), {Port({{kFirst, 8080}, {kSecond, 8080}}, true)})));
    std::set<int> chosen;
    for (int i = 0; i < 10; ++i) {
      EXPECT_EQ(Connect(kService, 80), 0);
      for (const int listener : {in_first, in_second}) {
        fcntl(listener, F_SETFL, O_NONBLOCK);
        const int fd = accept(listener, nullptr, nullptr);
        if (fd < 0) continue;
        close(fd);
        chosen.insert(listener);
      }
    }
    EXPECT_EQ(chosen.size(), 1U);
  });
}

TEST(NodeNetwork, NewRulesReplaceTheOldOnesWhole) {
  AsNode([] {
    Node node;
    const int in_first = node.first.Inside([] { return Listen(8080); });
    const int in_second = node.second.Inside([] { return Listen(9090); });
    ExpectOk(ApplyNft(ServiceRules(node.config(), {Port({{kFirst, 8080}, {kSecond, 9090}})})));
    ExpectOk(ApplyNft(ServiceRules(node.config(), {Port({{kSecond, 9090}})})));
    close(in_first);
    for (int i = 0; i < 8; ++i) EXPECT_EQ(Connect(kService, 80), 0);
    ExpectOk(ApplyNft(ServiceRules(node.config(), {Port({})})));
    EXPECT_EQ(Connect(kService, 80), ECONNREFUSED);
    close(in_second);
  });
}

TEST(NodeNetwork, EnsureHostMayBeRepeatedAndKeepsTheServices) {
  AsNode([] {
    Node node;
    const int in_first = node.first.Inside([] { return Listen(8080); });
    ExpectOk(ApplyNft(ServiceRules(node.config(), {Port({{kFirst, 8080}})})));
    ExpectOk(EnsureHost(node.config()));
    EXPECT_EQ(Connect(kService, 80), 0);
    close(in_first);
  });
}

TEST(NodeNetwork, AttachReplacesALinkThatACrashLeftBehind) {
  AsNode([] {
    Node node;
    NetworkNamespace again;
    node.Attach(again, *Ipv4::Parse("10.42.0.9"), "one");
    again.Inside([&] {
      EXPECT_EQ(Connect(node.config().BridgeAddress(), 9), ECONNREFUSED);
      return 0;
    });
    EXPECT_EQ(node.netlink().ListInterfaces(kHostInterfacePrefix)->size(), 2U);
  });
}

TEST(NodeNetwork, FailedAttachLeavesNothing) {
  AsNode([] {
    Node node;
    NetworkNamespace pod;
    PodAttachment attachment;
    attachment.netns_fd = pod.fd();
    attachment.host_interface = "mupbroken";
    attachment.bridge = "muster0";
    attachment.address = *Ipv4::Parse("10.42.0.9");
    attachment.prefix_length = 24;
    attachment.gateway = *Ipv4::Parse("10.42.0.255");  // broadcast: no route can use it
    EXPECT_FALSE(node.netlink().AttachPod(attachment).ok());
    EXPECT_TRUE(node.netlink().ListInterfaces("mupbroken")->empty());
    attachment.bridge = "absent0";
    EXPECT_NE(node.netlink().AttachPod(attachment).message().find("absent0"), std::string::npos);
    ExpectOk(node.netlink().DetachPod("mupbroken"));
  });
}

TEST(NodeNetwork, RemoveHostLeavesTheNamespaceAsItWas) {
  AsNode([] {
    const std::string before = HostFile("/proc/sys/net/ipv4/ip_forward");
    const auto routes = [] {
      std::ifstream file("/proc/net/fib_trie");
      return std::string(std::istreambuf_iterator<char>(file), {});
    };
    const std::string routes_before = routes();
    {
      Node node;
      EXPECT_EQ(HostFile("/proc/sys/net/ipv4/ip_forward"), "1");
      ExpectOk(EnsureHost(node.config()));  // must not take its own work for what was before
      ExpectOk(RemoveHost(node.config()));
      ExpectOk(RemoveHost(node.config()));
      EXPECT_FALSE(std::filesystem::exists(node.config().state_file));
      EXPECT_EQ(*node.netlink().ListInterfaces(""), (std::vector<std::string>{"lo"}));
    }
    EXPECT_EQ(HostFile("/proc/sys/net/ipv4/ip_forward"), before);
    EXPECT_EQ(routes(), routes_before);
    EXPECT_FALSE(ApplyNft("delete table ip muster\n").ok());
  });
}

TEST(NodeNetwork, AnotherOwnerIsRefusedAndRemovesNothing) {
  AsNode([] {
    Node node;
    StateFile other_state;
    NodeNetworkConfig other;
    other.state_file = other_state.path();
    const Status refused = EnsureHost(other);
    EXPECT_EQ(refused.reason(), Reason::kAlreadyExists);
    EXPECT_NE(refused.message().find("stop it with muster down --data-dir"), std::string::npos)
        << refused.message();
    EXPECT_FALSE(std::filesystem::exists(other.state_file));

    // A state file that an earlier boot left behind gives no right to anything either.
    std::ofstream(other.state_file) << "ip_forward=0\n" << std::flush;
    ExpectOk(RemoveHost(other));
    EXPECT_FALSE(std::filesystem::exists(other.state_file));
    EXPECT_EQ(HostFile("/proc/sys/net/ipv4/ip_forward"), "1");
    EXPECT_EQ(node.netlink().ListInterfaces(kHostInterfacePrefix)->size(), 2U);
    EXPECT_EQ(node.netlink().ListInterfaces("muster0")->size(), 1U);
    const int in_first = node.first.Inside([] { return Listen(8080); });
    ExpectOk(ApplyNft(ServiceRules(node.config(), {Port({{kFirst, 8080}})})));
    EXPECT_EQ(Connect(kService, 80), 0);
    close(in_first);
  });
}

TEST(NodeNetwork, AnOwnerIsTheSameByAnyPathAndGoesWithItsStateFile) {
  AsNode([] {
    Node node;
    StateFile links, next_state;
    std::filesystem::create_directory_symlink(
        std::filesystem::path(node.config().state_file).parent_path(), links.path());
    NodeNetworkConfig linked = node.config();
    linked.state_file = links.path() + "/network.state";
    ExpectOk(EnsureHost(linked));

    std::filesystem::remove(node.config().state_file);  // its data folder was deleted
    NodeNetworkConfig next;
    next.state_file = next_state.path();
    ExpectOk(EnsureHost(next));
    EXPECT_EQ(*node.netlink().GetAlias("muster0"), next.state_file);
    ExpectOk(RemoveHost(next));
    EXPECT_TRUE(node.netlink().ListInterfaces("muster0")->empty());
    EXPECT_EQ(*node.netlink().GetAlias("muster0"), "");
  });
}

TEST(NodeNetwork, LoopbackOnlyPodReachesItself) {
  AsNode([] {
    NetworkNamespace pod;
    Netlink netlink = *Netlink::Open();
    ExpectOk(netlink.SetLoopbackUp(pod.fd()));
    pod.Inside([] {
      const int own = Listen(8080);
      EXPECT_EQ(Connect(*Ipv4::Parse("127.0.0.1"), 8080), 0);
      close(own);
      return 0;
    });
  });
}

json::Value Service(std::string name, json::Value spec) {
  return Obj({{"metadata", Obj({{"name", name}, {"namespace", "ns"}})}, {"spec", std::move(spec)}});
}

json::Value Slice(std::string service, json::Value endpoints, json::Value ports) {
  return Obj({{"metadata", Obj({{"namespace", "ns"},
                                {"labels", Obj({{"kubernetes.io/service-name", service}})}})},
              {"addressType", "IPv4"},
              {"endpoints", std::move(endpoints)},
              {"ports", std::move(ports)}});
}

TEST(ServicePorts, FollowReadyEndpointsByPortName) {
  const auto port = [](std::string name, int number) {
    return Obj({{"name", name}, {"port", number}, {"protocol", "TCP"}});
  };
  const json::Value service =
      Service("web", Obj({{"clusterIP", "10.43.0.10"},
                          {"clusterIPs", List({"10.43.0.10"})},
                          {"ports", List({port("http", 80), port("admin", 81)})}}));
  const json::Value slice = Slice(
      "web",
      List({Obj({{"addresses", List({"10.42.0.3"})}, {"conditions", Obj({{"ready", true}})}}),
            Obj({{"addresses", List({"10.42.0.4"})}, {"conditions", Obj({{"ready", false}})}}),
            Obj({{"addresses", List({"10.42.0.2"})}}),
            Obj({{"addresses", List({"not an address"})}})}),
      List({port("http", 8080), port("other", 1), Obj({{"name", "admin"}, {"port", 70000}})}));
  const json::Value headless =
      Service("head", Obj({{"clusterIP", "None"}, {"ports", List({port("http", 80)})}}));
  const std::vector<ServicePort> ports = ServicePorts({service, headless}, {slice, json::Value()});
  ASSERT_EQ(ports.size(), 2U);
  EXPECT_EQ(ports[0].endpoints, (std::vector<ServiceEndpoint>{{kFirst, 8080}, {kSecond, 8080}}));
  EXPECT_EQ(ports[1].port, 81);
  EXPECT_TRUE(ports[1].endpoints.empty());
}

TEST(ServiceRules, RulesDoNotGrowWithTheNumberOfServices) {
  const auto rules = [](uint32_t services) {
    std::vector<ServicePort> ports;
    for (uint32_t i = 0; i < services; ++i) {
      ports.push_back({Ipv4{kService.value + i},
                       ServiceProtocol::kTcp,
                       80,
                       false,
                       {{kFirst, 80}, {kSecond, 80}}});
    }
    const std::string text = ServiceRules(NodeNetworkConfig(), ports);
    return std::ranges::count(text, '{');
  };
  EXPECT_EQ(rules(2), rules(200));
}

TEST(ServiceRules, EndpointsOfAPortAreBounded) {
  std::vector<ServiceEndpoint> endpoints;
  for (uint32_t i = 0; i <= kMaxEndpointsPerServicePort; ++i)
    endpoints.push_back({Ipv4{0x0A2A0102 + i}, 80});
  const std::string text = ServiceRules(NodeNetworkConfig(), {Port(endpoints)});
  EXPECT_NE(text.find(fmt::format("goto random_{}", kMaxEndpointsPerServicePort)),
            std::string::npos);
  EXPECT_EQ(text.find(fmt::format(" . {} :", kMaxEndpointsPerServicePort)), std::string::npos);
}

TEST(ServiceRules, NftTakesManyServices) {
  InNetworkNamespace([] {
    std::vector<ServicePort> ports;
    for (uint32_t i = 0; i < 500; ++i) {
      ServicePort port{Ipv4{kService.value + i},
                       i % 3 == 0 ? ServiceProtocol::kUdp : ServiceProtocol::kTcp, 80};
      for (uint32_t e = 0; e <= i % 10; ++e)
        port.endpoints.push_back({Ipv4{0x0A2A0000 + 2 + i * 10 + e}, 8080});
      ports.push_back(port);
    }
    ExpectOk(ApplyNft(ServiceRules(NodeNetworkConfig(), ports)));
    const Status broken = ApplyNft("table ip x { nonsense }");
    EXPECT_NE(broken.message().find("syntax error"), std::string::npos) << broken.message();
  });
}

}  // namespace
}  // namespace muster::agent
