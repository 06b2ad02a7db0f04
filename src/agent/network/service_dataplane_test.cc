// Services with real packets, and the dataplane's picture of the kernel.

#include "agent/network/service_dataplane.h"

#include <poll.h>

#include <algorithm>
#include <set>

#include "agent/network/connection_tracking.h"
#include "agent/network/node_test_support.h"
#include "base/rng.h"

namespace muster::agent {
namespace {

const Ipv4 kClient = *Ipv4::Parse("10.42.0.4");

// How many connections wait at a listener; each must come from `from`.
int CountAccepted(int listener, Ipv4 from) {
  fcntl(listener, F_SETFL, O_NONBLOCK);
  int accepted = 0;
  sockaddr_in peer{};
  socklen_t size = sizeof peer;
  for (int fd; (fd = accept(listener, reinterpret_cast<sockaddr*>(&peer), &size)) >= 0; close(fd)) {
    EXPECT_EQ(Ipv4{ntohl(peer.sin_addr.s_addr)}, from);
    ++accepted;
  }
  return accepted;
}

TEST(ServiceDataplane, LeadsToEveryEndpointAndKeepsTheClientsAddress) {
  AsNode([] {
    TwoPods node;
    const int in_first = node.first.Inside([] { return Listen(8080); });
    const int in_second = node.second.Inside([] { return Listen(8081); });
    ExpectOk(ReplaceServices({{kHttp, {.endpoints = {{kFirst, 8080}, {kSecond, 8081}}}}}));
    NetworkNamespace client;
    node.Attach(client, kClient, "client");
    client.Inside([&] {
      for (int i = 0; i < 14; ++i) EXPECT_EQ(Connect(kService, 80), 0);
      return 0;
    });
    const int first = CountAccepted(in_first, kClient);
    const int second = CountAccepted(in_second, kClient);
    EXPECT_EQ(first + second, 14);
    EXPECT_GT(first, 0);
    EXPECT_GT(second, 0);
    EXPECT_EQ(Connect(kService, 80), 0);  // from the node itself
    EXPECT_EQ(Connect(kService, 81), ECONNREFUSED);
  });
}

TEST(ServiceDataplane, PodReachesItself) {
  AsNode([] {
    TwoPods node;
    const int in_first = node.first.Inside([] { return Listen(8080); });
    ExpectOk(ReplaceServices({{kHttp, {.endpoints = {{kFirst, 8080}}}}}));
    Ipv4 from;
    node.first.Inside([&] {
      EXPECT_EQ(Connect(kService, 80, in_first, &from), 0);
      return 0;
    });
    EXPECT_EQ(from, node.config().BridgeAddress());
  });
}

TEST(ServiceDataplane, NodePortsAreReachedAtTheNodesAddresses) {
  AsNode([] {
    TwoPods node;
    const ServiceFrontend port{Ipv4{}, ServiceProtocol::kTcp, 30080};
    const int in_first = node.first.Inside([] { return Listen(8080); });
    ExpectOk(ReplaceServices({{port, {.endpoints = {{kFirst, 8080}}}}}));
    Ipv4 from;
    node.second.Inside([&] {
      EXPECT_EQ(Connect(node.config().BridgeAddress(), 30080, in_first, &from), 0);
      EXPECT_EQ(Connect(node.config().BridgeAddress(), 30081), ECONNREFUSED);
      EXPECT_EQ(Connect(kFirst, 30080), ECONNREFUSED);  // no address of the node
      return 0;
    });
    EXPECT_EQ(from, kSecond);
    EXPECT_EQ(Connect(node.config().BridgeAddress(), 30080), 0);  // from the node itself
    ExpectOk(ReplaceServices({}));
    EXPECT_EQ(Connect(node.config().BridgeAddress(), 30080), ECONNREFUSED);
  });
}

// Eight endpoints in one pod: one that is chosen anew each time is ten times the same in 1 of 8^9
// runs.
class StickyNode : public TwoPods {
 public:
  StickyNode() {
    for (uint16_t port = 8080; port < 8088; ++port) {
      endpoints.push_back({kFirst, port});
      listeners_.push_back(first.Inside([&] { return Listen(port); }));
    }
  }
  Ipv4 AddressOf(const ServiceFrontend& frontend) const {
    return frontend.IsNodePort() ? config().BridgeAddress() : frontend.address;
  }
  // The endpoint of so many connections, which must be one.
  ServiceEndpoint Reach(const ServiceFrontend& frontend, int times) {
    for (int i = 0; i < times; ++i) EXPECT_EQ(Connect(AddressOf(frontend), frontend.port), 0);
    std::vector<ServiceEndpoint> chosen;
    for (size_t i = 0; i < listeners_.size(); ++i) {
      if (CountAccepted(listeners_[i], config().BridgeAddress()) > 0)
        chosen.push_back(endpoints[i]);
    }
    EXPECT_EQ(chosen.size(), 1U);
    return chosen.empty() ? ServiceEndpoint() : chosen[0];
  }
  std::vector<ServiceEndpoint> endpoints;

 private:
  std::vector<int> listeners_;
};

const ServiceFrontend kNodePort{Ipv4{}, ServiceProtocol::kTcp, 30080};

TEST(ServiceDataplane, AClientKeepsItsEndpointUntilThatIsGone) {
  AsNode([] {
    StickyNode node;
    for (const ServiceFrontend& frontend : {kHttp, kNodePort}) {
      std::vector<ServiceEndpoint> left(node.endpoints.begin(), node.endpoints.begin() + 4);
      const auto set = [&] {
        ExpectOk(ReplaceServices({{frontend, {.affinity_seconds = 600, .endpoints = left}}}));
      };
      for (int round = 0; round < 3; ++round) {
        set();
        const ServiceEndpoint chosen = node.Reach(frontend, 10);
        // More endpoints, an agent that starts again, another timeout: it stays there.
        left = node.endpoints;
        set();
        EXPECT_EQ(node.Reach(frontend, 10), chosen);
        ExpectOk(ReplaceServices({{frontend, {.affinity_seconds = 60, .endpoints = left}}}));
        EXPECT_EQ(node.Reach(frontend, 10), chosen);
        std::erase(left, chosen);
        set();
        EXPECT_NE(node.Reach(frontend, 10), chosen);
      }
    }
  });
}

// A second; each connection begins it anew.
TEST(ServiceDataplane, AClientIsForgottenWhenItsTimeIsOver) {
  AsNode([] {
    StickyNode node;
    for (const ServiceFrontend& frontend : {kHttp, kNodePort}) {
      ExpectOk(ReplaceServices({{frontend, {.affinity_seconds = 1, .endpoints = node.endpoints}}}));
      const ServiceEndpoint chosen = node.Reach(frontend, 1);
      for (int i = 0; i < 5; ++i) {
        poll(nullptr, 0, 400);
        EXPECT_EQ(node.Reach(frontend, 1), chosen);
      }
      // In 1 of 8^8 runs it is always the same.
      bool another = false;
      for (int i = 0; i < 8 && !another; ++i) {
        poll(nullptr, 0, 1600);
        another = node.Reach(frontend, 1) != chosen;
      }
      EXPECT_TRUE(another);
    }
  });
}

TEST(ServiceDataplane, NothingIsLeftOfTheClientsOfAServiceThatIsGone) {
  AsNode([] {
    StickyNode node;
    const auto clients = [] {
      NftSocket socket = *NftSocket::Open();
      return socket.ListSet(NftSet::kAffinity)->size() +
             socket.ListSet(NftSet::kNodeAffinity)->size();
    };
    const ServiceBackend sticky{.affinity_seconds = 600, .endpoints = node.endpoints};
    ServiceDataplane dataplane = *ServiceDataplane::Open();
    ASSERT_TRUE(dataplane.Replace({{kHttp, sticky}, {kNodePort, sticky}}));
    (void)node.Reach(kHttp, 2);
    (void)node.Reach(kNodePort, 2);
    EXPECT_EQ(clients(), 2U);
    ASSERT_TRUE(dataplane.Apply({{kHttp, {.endpoints = node.endpoints}}}));
    EXPECT_EQ(clients(), 1U);
    ASSERT_TRUE(dataplane.Apply({{kNodePort, {}}}));
    EXPECT_EQ(clients(), 0U);
  });
}

TEST(ServiceDataplane, ChangesTakeEffectAtOnce) {
  AsNode([] {
    TwoPods node;
    const int in_first = node.first.Inside([] { return Listen(8080); });
    const int in_second = node.second.Inside([] { return Listen(9090); });
    ServiceDataplane dataplane = *ServiceDataplane::Open();
    ASSERT_TRUE(dataplane.Apply({{kHttp, {.endpoints = {{kFirst, 8080}, {kSecond, 9090}}}}}));
    ASSERT_TRUE(dataplane.Apply({{kHttp, {.endpoints = {{kSecond, 9090}}}}}));
    close(in_first);
    for (int i = 0; i < 8; ++i) EXPECT_EQ(Connect(kService, 80), 0);
    ASSERT_TRUE(dataplane.Apply({{kHttp, {}}}));
    EXPECT_EQ(Connect(kService, 80), ECONNREFUSED);
    close(in_second);
  });
}

TEST(ServiceDataplane, NoEndpointForThisNodeIsSilence) {
  InNetworkNamespace([] {
    TwoPods node;
    ExpectOk(ReplaceServices({{{kService, ServiceProtocol::kUdp, 9}, {.drop = true}}}));
    EXPECT_EQ(node.first.Inside([] { return SendDatagram(kService); }), 0);
    ExpectOk(ReplaceServices({}));
    EXPECT_EQ(node.first.Inside([] { return SendDatagram(kService); }), ECONNREFUSED);
  });
}

// Users list their rules with it, and so does `muster doctor`.
TEST(ServiceDataplane, NftCanListTheRules) {
  InNetworkNamespace([] {
    ExpectOk(ApplyNft(HostRules(NodeNetworkConfig())));
    ServiceTable table;
    for (const Ipv4 address : {kService, Ipv4{}}) {
      for (const bool by_client : {false, true}) {
        table[{address, ServiceProtocol::kTcp, static_cast<uint16_t>(80 + by_client)}] = {
            .affinity_seconds = by_client ? 600U : 0, .endpoints = {{kFirst, 80}, {kSecond, 80}}};
      }
    }
    ExpectOk(ReplaceServices(table));
    const auto rules = ListNft();
    ASSERT_TRUE(rules) << rules.error().ToString();
    for (const char* rule :
         {"dnat ip to ip daddr . ip protocol . th dport . numgen random mod 2 map @endpoints",
          "dnat ip to ip protocol . th dport . numgen random mod 2 map @node_endpoints",
          "dnat ip to ip daddr . ip protocol . th dport . ip saddr map @affinity",
          "dnat ip to ip protocol . th dport . ip saddr map @node_affinity",
          "ip daddr . ip protocol . th dport . numgen random mod 2 vmap @client_endpoints",
          "update @affinity { ip daddr . ip protocol . th dport . ip saddr timeout 10m500ms : "
          "10.42.0.2 . 80 }",
          "update @node_clients { ip protocol . th dport . ip saddr timeout 10m }",
          "meta mark set meta mark | 0x00004000"})
      EXPECT_NE(rules->find(rule), std::string::npos) << rule << "\n" << *rules;
    ExpectOk(ApplyNft("flush ruleset\n" + *rules));  // as after a restart of the machine
  });
}

uint32_t Below(Rng& rng, uint32_t bound) { return static_cast<uint32_t>(rng.Below(bound)); }

ServiceTable RandomTable(Rng& rng) {
  ServiceTable table;
  for (uint32_t i = Below(rng, 12); i > 0; --i) {
    ServiceBackend backend;
    if (Below(rng, 3) == 0) backend.affinity_seconds = 60 + Below(rng, 2);
    std::set<ServiceEndpoint> endpoints;
    // Now and then more than chains are kept for.
    for (uint32_t e = Below(rng, Below(rng, 4) == 0 ? 60 : 6); e > 0; --e)
      endpoints.insert({{0x0A2A0002 + Below(rng, 16)}, static_cast<uint16_t>(80 + Below(rng, 2))});
    backend.endpoints.assign(endpoints.begin(), endpoints.end());
    backend.drop = endpoints.empty() && Below(rng, 2) == 0;
    const auto protocol = static_cast<ServiceProtocol>(Below(rng, 3));
    const Ipv4 address{Below(rng, 3) == 0 ? 0 : kService.value + Below(rng, 4)};
    const bool host_port = Below(rng, 3) == 0;
    if (host_port) backend = {.endpoints = {{{0x0A2A0002 + Below(rng, 8)}, 80}}};
    table[{address, protocol, static_cast<uint16_t>(30000 + Below(rng, 2)), host_port}] = backend;
  }
  return table;
}

// Whatever was there before (also of an agent that was killed), the kernel has what is wanted, and
// a second pass writes nothing.
TEST(ServiceDataplane, TheKernelHasWhatIsWantedAfterAnyChange) {
  InNetworkNamespace([] {
    ExpectOk(ApplyNft(HostRules(NodeNetworkConfig())));
    Rng rng(7);
    ServiceDataplane dataplane = *ServiceDataplane::Open();
    ServiceTable now;
    for (int round = 0; round < 200; ++round) {
      if (round % 7 == 0) dataplane = *ServiceDataplane::Open();
      if (rng.Below(2) == 0) {
        now = RandomTable(rng);
        ASSERT_TRUE(dataplane.Replace(now));
      } else {
        ServiceTable changes = RandomTable(rng);
        for (const auto& [frontend, backend] : now)
          if (rng.Below(4) == 0) changes[frontend] = {};
        ASSERT_TRUE(dataplane.Apply(changes));
        for (auto& [frontend, backend] : changes) now[frontend] = std::move(backend);
      }
      NftElements want;
      std::set<ServiceChain> chains;
      for (uint32_t i = 1; i <= kKeptChainEndpoints; ++i)
        for (const bool node_port : {false, true}) chains.insert({i, 0, node_port});
      for (const auto& [frontend, backend] : now) {
        for (const NftElement& element : ElementsOf(frontend, backend)) {
          want.push_back(element);
          if (HasVerdict(element.set) && !element.chain.IsFixed()) chains.insert(element.chain);
        }
      }
      std::ranges::sort(want);
      NftSocket socket = *NftSocket::Open();
      NftElements have;
      for (const NftSet set : kNftSets) {
        const NftElements elements = *socket.ListSet(set);
        have.insert(have.end(), elements.begin(), elements.end());
      }
      std::ranges::sort(have);
      ASSERT_EQ(have, want) << "round " << round;
      ASSERT_EQ(*socket.ListChains(), chains) << "round " << round;
      const auto again = ServiceDataplane::Open()->Replace(now);
      ASSERT_TRUE(again);
      ASSERT_EQ(again->transactions, 0U);
    }
  });
}

TEST(ServiceDataplane, ManyServicesTakeSeveralTransactionsAndWhatTheNodeSaysIsReadBack) {
  InNetworkNamespace([] {
    ExpectOk(ApplyNft(HostRules(NodeNetworkConfig())));
    ServiceTable table;
    for (uint32_t i = 0; i < 600; ++i) {
      ServiceBackend& backend = table[{{kService.value + i}, ServiceProtocol::kTcp, 80}];
      for (uint32_t e = 0; e < 10; ++e) backend.endpoints.push_back({{0x0A2A0002 + e}, 80});
    }
    ServiceDataplane dataplane = *ServiceDataplane::Open();
    const auto applied = dataplane.Replace(table);
    ASSERT_TRUE(applied) << applied.error().ToString();
    EXPECT_EQ(applied->added, 600U * 11);
    EXPECT_GT(applied->transactions, 1U);
    EXPECT_EQ(ServiceDataplane::Open()->Replace(table)->transactions, 0U);
  });
}

TEST(ServiceDataplane, TellsOfLostEndpointsOfDatagrams) {
  InNetworkNamespace([] {
    ExpectOk(ApplyNft(HostRules(NodeNetworkConfig())));
    const ServiceFrontend dns{kService, ServiceProtocol::kUdp, 53};
    ServiceDataplane dataplane = *ServiceDataplane::Open();
    ASSERT_TRUE(dataplane.Apply({{dns, {.endpoints = {{kFirst, 53}, {kSecond, 53}}}},
                                 {kHttp, {.endpoints = {{kFirst, 80}}}}}));
    const auto applied = dataplane.Apply({{dns, {.endpoints = {{kSecond, 53}}}}, {kHttp, {}}});
    ASSERT_TRUE(applied);
    EXPECT_EQ(applied->lost_datagram_endpoints,
              (std::map<ServiceFrontend, std::set<ServiceEndpoint>>{{dns, {{kFirst, 53}}}}));
  });
}

// One client, one socket, that goes on sending: what it sends second.
TEST(ServiceDataplane, AFlowOfDatagramsLeavesALostEndpoint) {
  InNetworkNamespace([] {
    TwoPods node;
    const auto bind_udp = [] {
      const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
      const sockaddr_in here = ToSocketAddress(Ipv4{}, 5353);
      CHECK(bind(fd, reinterpret_cast<const sockaddr*>(&here), sizeof here) == 0);
      return fd;
    };
    const auto arrived = [](int fd, int patience_ms) {
      pollfd readable{fd, POLLIN, 0};
      char byte = 0;
      return poll(&readable, 1, patience_ms) == 1 && recv(fd, &byte, 1, 0) == 1;
    };
    constexpr int kPatienceMs = 5000;
    const int in_first = node.first.Inside(bind_udp), in_second = node.second.Inside(bind_udp);
    const ServiceFrontend dns{kService, ServiceProtocol::kUdp, 53};
    ServiceDataplane dataplane = *ServiceDataplane::Open();
    ASSERT_TRUE(dataplane.Apply({{dns, {.endpoints = {{kFirst, 5353}}}}}));
    const int client = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const sockaddr_in there = ToSocketAddress(kService, 53);
    ASSERT_EQ(connect(client, reinterpret_cast<const sockaddr*>(&there), sizeof there), 0);
    ASSERT_EQ(send(client, "1", 1, 0), 1);
    EXPECT_TRUE(arrived(in_first, kPatienceMs));
    const auto applied = dataplane.Apply({{dns, {.endpoints = {{kSecond, 5353}}}}});
    ASSERT_TRUE(applied);
    const auto forgotten = ForgetDatagrams(applied->lost_datagram_endpoints);
    ASSERT_TRUE(forgotten) << forgotten.error().ToString();
    EXPECT_EQ(*forgotten, 1U);
    ASSERT_EQ(send(client, "2", 1, 0), 1);
    EXPECT_TRUE(arrived(in_second, kPatienceMs));
    EXPECT_FALSE(arrived(in_first, 0));
    EXPECT_EQ(*ForgetDatagrams(applied->lost_datagram_endpoints), 0U);
  });
}

TEST(ServiceDataplane, WithoutATableItSaysSo) {
  InNetworkNamespace([] {
    const auto opened = ServiceDataplane::Open();
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().reason(), Reason::kNotFound);
  });
}

}  // namespace
}  // namespace muster::agent
