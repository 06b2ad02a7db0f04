// Network policies with real packets, and the dataplane's picture of the kernel.

#include "agent/network/policy_dataplane.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <set>

#include "agent/network/node_test_support.h"
#include "agent/network/policy_batch.h"
#include "base/rng.h"
#include "base/time.h"

namespace muster::agent {
namespace {

constexpr const char* kPeers = "policy_peers_1";
constexpr const char* kIn = "policy_chain_in";
constexpr const char* kOut = "policy_chain_out";
const Ipv4 kThird = *Ipv4::Parse("10.42.0.4");

// As the spawner does at its first request.
void Program(const PolicyTable& table) {
  auto dataplane = PolicyDataplane::Open();
  ASSERT_TRUE(dataplane) << dataplane.error().ToString();
  const auto applied = dataplane->Replace(table);
  ASSERT_TRUE(applied) << applied.error().ToString();
}

// What may come into the first pod.
PolicyTable Into(std::vector<PolicyMatch> allow, std::set<Ipv4> peers = {}) {
  PolicyTable table;
  table.peers[kPeers] = std::move(peers);
  table.chains[kIn] = {.ingress = true, .allow = std::move(allow)};
  table.ingress[kFirst] = kIn;
  return table;
}

// What may go out of the second pod.
PolicyTable OutOfSecond(std::vector<PolicyMatch> allow, std::set<Ipv4> peers = {}) {
  PolicyTable table;
  table.peers[kPeers] = std::move(peers);
  table.chains[kOut] = {.allow = std::move(allow)};
  table.egress[kSecond] = kOut;
  return table;
}

bool ConnectsWithin(const NetworkNamespace& from, Ipv4 to, uint16_t port, const timeval& limit) {
  return from.Inside([&] {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    const sockaddr_in there = ToSocketAddress(to, port);
    const bool ok = connect(fd, reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0;
    close(fd);
    return ok;
  });
}

bool Reaches(const NetworkNamespace& from, Ipv4 to, uint16_t port) {
  return ConnectsWithin(from, to, port, {.tv_sec = 5});
}

// What is dropped is silence, which costs the test a while.
bool IsCutOff(const NetworkNamespace& from, Ipv4 to, uint16_t port) {
  return !ConnectsWithin(from, to, port, {.tv_usec = 200'000});
}

TEST(PolicyDataplane, WhoIsNotAllowedDoesNotComeIn) {
  AsNode([] {
    TwoPods node;
    NetworkNamespace third;
    node.Attach(third, kThird, "three");
    node.first.Inside([] { return Listen(8080) + Listen(8081); });
    Program(Into({}));
    EXPECT_TRUE(IsCutOff(node.second, kFirst, 8080));
    EXPECT_EQ(Connect(kFirst, 8080), 0);  // the node itself
    EXPECT_TRUE(Reaches(node.first, kFirst, 8080));
    node.second.Inside([] { return Listen(8080); });
    EXPECT_TRUE(Reaches(node.first, kSecond, 8080));  // it may go out, and gets its answers

    Program(Into({{.peers = kPeers}}, {kSecond}));
    EXPECT_TRUE(Reaches(node.second, kFirst, 8080));
    EXPECT_TRUE(IsCutOff(third, kFirst, 8080));
    Program(Into({{.protocol = ServiceProtocol::kTcp, .first_port = 8081, .last_port = 8081}}));
    EXPECT_TRUE(IsCutOff(node.second, kFirst, 8080));
    EXPECT_TRUE(Reaches(node.second, kFirst, 8081));
    Program(Into({{.protocol = ServiceProtocol::kTcp, .first_port = 8000, .last_port = 8080}}));
    EXPECT_TRUE(Reaches(node.second, kFirst, 8080));
    EXPECT_TRUE(IsCutOff(node.second, kFirst, 8081));
    Program(Into({{.protocol = ServiceProtocol::kUdp}}));
    EXPECT_TRUE(IsCutOff(node.second, kFirst, 8080));

    Program({});
    EXPECT_TRUE(Reaches(third, kFirst, 8080));
  });
}

TEST(PolicyDataplane, RangesWithoutWhatIsLeftOut) {
  InNetworkNamespace([] {
    TwoPods node;
    NetworkNamespace third;
    node.Attach(third, kThird, "three");
    node.first.Inside([] { return Listen(8080); });
    const Ipv4Prefix pods = *Ipv4Prefix::Parse("10.42.0.0/24");
    Program(Into({{.range = pods, .except = {{kThird, 32}}}}));
    EXPECT_TRUE(Reaches(node.second, kFirst, 8080));
    EXPECT_TRUE(IsCutOff(third, kFirst, 8080));
    Program(Into({{.range = pods, .except = {*Ipv4Prefix::Parse("10.42.0.2/31")}}}));
    EXPECT_TRUE(IsCutOff(node.second, kFirst, 8080));
    EXPECT_TRUE(Reaches(third, kFirst, 8080));
    Program(Into({{.range = *Ipv4Prefix::Parse("0.0.0.0/0")}}));
    EXPECT_TRUE(Reaches(node.second, kFirst, 8080));
    Program(Into({{.peers = kPeers, .range = pods}}, {kThird}));
    EXPECT_TRUE(IsCutOff(node.second, kFirst, 8080));
  });
}

TEST(PolicyDataplane, OutOfAPodAndThenIntoTheOther) {
  AsNode([] {
    TwoPods node;
    NetworkNamespace third;
    node.Attach(third, kThird, "three");
    node.first.Inside([] { return Listen(8080); });
    third.Inside([] { return Listen(8080); });
    const int on_node = Listen(8090);
    Program(OutOfSecond({{.peers = kPeers}}, {kFirst}));
    EXPECT_TRUE(Reaches(node.second, kFirst, 8080));
    EXPECT_TRUE(IsCutOff(node.second, kThird, 8080));
    EXPECT_TRUE(Reaches(third, kFirst, 8080));
    EXPECT_TRUE(Reaches(node.second, node.config().BridgeAddress(), 8090));  // the node itself
    PolicyTable both = OutOfSecond({{.peers = kPeers}}, {kFirst});
    both.chains[kIn] = {.ingress = true};
    both.ingress[kFirst] = kIn;
    Program(both);
    EXPECT_TRUE(IsCutOff(node.second, kFirst, 8080));
    close(on_node);
  });
}

constexpr uint16_t kExperiment = 0x88B5;  // an EtherType that is nobody's

int FrameSocket() {
  const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(kExperiment));
  CHECK(fd >= 0);
  const int eth0 = static_cast<int>(if_nametoindex(std::string(kPodInterface).c_str()));
  sockaddr_ll here{.sll_family = AF_PACKET, .sll_protocol = htons(kExperiment)};
  here.sll_ifindex = eth0;
  CHECK(bind(fd, reinterpret_cast<const sockaddr*>(&here), sizeof here) == 0);
  return fd;
}

// From the second pod to the first one, past the node.
bool FrameArrives(const TwoPods& node) {
  const int server = node.first.Inside(FrameSocket), client = node.second.Inside(FrameSocket);
  std::array<uint8_t, 60> frame = {0x0a, 0x58, 10, 42, 0, 2, 0x0a, 0x58, 10, 42, 0, 3, 0x88, 0xB5};
  CHECK(send(client, frame.data(), frame.size(), 0) == static_cast<ssize_t>(frame.size()));
  pollfd readable{server, POLLIN, 0};
  const bool arrived = poll(&readable, 1, 300) == 1;
  close(client);
  close(server);
  return arrived;
}

TEST(FencePods, NothingGoesPastTheNode) {
  AsNode([] {
    TwoPods node;
    EXPECT_TRUE(FrameArrives(node));
    ExpectOk(FencePods(node.config()));
    ExpectOk(FencePods(node.config()));
    EXPECT_FALSE(FrameArrives(node));
    node.first.Inside([] { return Listen(8080); });
    EXPECT_TRUE(Reaches(node.second, kFirst, 8080));
    ExpectOk(ReplaceServices({{kHttp, {.endpoints = {{kFirst, 8080}}}}}));
    EXPECT_TRUE(Reaches(node.second, kService, 80));
    EXPECT_TRUE(Reaches(node.first, kService, 80));
    EXPECT_EQ(Connect(kFirst, 8080), 0);
    ExpectOk(RemoveHost(node.config()));
    EXPECT_FALSE(ApplyNft("delete table bridge muster\n").ok());
  });
}

// A client knows the Service, a policy the pod behind it.
TEST(PolicyDataplane, ServicesAreJudgedByTheEndpoint) {
  AsNode([] {
    TwoPods node;
    node.first.Inside([] { return Listen(8080); });
    const ServiceFrontend node_port{Ipv4{}, ServiceProtocol::kTcp, 30080};
    const Ipv4 bridge = node.config().BridgeAddress();
    ExpectOk(ReplaceServices(
        {{kHttp, {.endpoints = {{kFirst, 8080}}}}, {node_port, {.endpoints = {{kFirst, 8080}}}}}));
    const PolicyMatch endpoint{
        .peers = kPeers, .protocol = ServiceProtocol::kTcp, .first_port = 8080, .last_port = 8080};
    Program(OutOfSecond({endpoint}, {kFirst}));
    EXPECT_TRUE(Reaches(node.second, kService, 80));
    Program(OutOfSecond({{.range = Ipv4Prefix{kService, 32}}}));
    EXPECT_TRUE(IsCutOff(node.second, kService, 80));
    EXPECT_TRUE(IsCutOff(node.second, bridge, 30080));
    Program(Into({endpoint}, {kSecond}));
    EXPECT_TRUE(Reaches(node.second, kService, 80));
    EXPECT_TRUE(Reaches(node.second, bridge, 30080));
    EXPECT_EQ(Connect(bridge, 30080), 0);            // from the node itself
    EXPECT_TRUE(Reaches(node.first, kService, 80));  // itself
    EXPECT_EQ(Connect(kService, 80), 0);
    Program(Into({endpoint}, {kThird}));
    EXPECT_TRUE(IsCutOff(node.second, kService, 80));
    EXPECT_TRUE(Reaches(node.first, kService, 80));
  });
}

TEST(PolicyDataplane, DatagramsAndWhatHasNoPorts) {
  InNetworkNamespace([] {
    TwoPods node;
    // Port 9, where nobody listens: who is let through is told so.
    const auto told_within = [&](const timeval& limit, std::vector<PolicyMatch> allow) {
      Program(Into(std::move(allow)));
      return node.second.Inside([&] {
        const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        const sockaddr_in there = ToSocketAddress(kFirst, 9);
        char byte = 0;
        CHECK(connect(fd, reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0);
        CHECK(send(fd, &byte, 1, 0) == 1);
        const bool refused = recv(fd, &byte, 1, 0) < 0 && errno == ECONNREFUSED;
        close(fd);
        return refused;
      });
    };
    // A lost packet would be tried again after a second.
    const auto told = [&](std::vector<PolicyMatch> allow) {
      return told_within({.tv_usec = 900'000}, std::move(allow));
    };
    const auto dropped = [&](PolicyMatch allow) {
      return !told_within({.tv_usec = 200'000}, {allow});
    };
    EXPECT_TRUE(told({{.protocol = ServiceProtocol::kUdp, .first_port = 9, .last_port = 9}}));
    EXPECT_TRUE(dropped({.protocol = ServiceProtocol::kUdp, .first_port = 10, .last_port = 10}));
    EXPECT_TRUE(dropped({.protocol = ServiceProtocol::kTcp, .first_port = 9, .last_port = 9}));
    EXPECT_TRUE(dropped({.protocol = ServiceProtocol::kSctp}));
    EXPECT_TRUE(told({{}}));
  });
}

TEST(PolicyDataplane, WhatWasAcceptedGoesOn) {
  InNetworkNamespace([] {
    TwoPods node;
    const int listener = node.first.Inside([] { return Listen(8080); });
    const int client = node.second.Inside([] {
      const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      const timeval limit{.tv_sec = 3};
      setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
      const sockaddr_in there = ToSocketAddress(kFirst, 8080);
      CHECK(connect(fd, reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0);
      return fd;
    });
    const int server = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    ASSERT_GE(server, 0);
    Program(Into({}));
    EXPECT_TRUE(IsCutOff(node.second, kFirst, 8080));
    char byte = 'x';
    ASSERT_EQ(send(client, &byte, 1, 0), 1);
    EXPECT_EQ(recv(server, &byte, 1, 0), 1);
    ASSERT_EQ(send(server, &byte, 1, 0), 1);
    EXPECT_EQ(recv(client, &byte, 1, 0), 1);
    close(client);
    close(server);
  });
}

// After an upgrade the table is another one.
TEST(PolicyDataplane, ANewTableIsClosedForWhomTheOldOneRestricted) {
  InNetworkNamespace([] {
    TwoPods node;
    node.first.Inside([] { return Listen(8080); });
    const PolicyTable table = Into({{.peers = kPeers}}, {kSecond});
    Program(table);
    EXPECT_TRUE(Reaches(node.second, kFirst, 8080));
    const auto chains = NftSocket::Open()->ListChainNames();
    for (const std::string& name : *chains) {
      if (name.starts_with("layout_")) ExpectOk(ApplyNft("delete chain ip muster " + name + "\n"));
    }
    ExpectOk(EnsureHost(node.config()));
    EXPECT_TRUE(NftSocket::Open()->ListAddresses(kPeers).error().reason() == Reason::kNotFound);
    EXPECT_TRUE(IsCutOff(node.second, kFirst, 8080));
    node.second.Inside([] { return Listen(8080); });
    EXPECT_TRUE(Reaches(node.first, kSecond, 8080));
    Program(table);
    EXPECT_TRUE(Reaches(node.second, kFirst, 8080));
    Program({});
    EXPECT_TRUE(NftSocket::Open()->ListAddresses(kIsolatedIn)->empty());
  });
}

TEST(PolicyDataplane, WhatSharesAnAddressMustBeAllowedByEachChain) {
  InNetworkNamespace([] {
    TwoPods node;
    node.first.Inside([] { return Listen(8080) + Listen(8081); });
    const auto tcp = [](uint16_t first, uint16_t last) {
      return PolicyMatch{.protocol = ServiceProtocol::kTcp, .first_port = first, .last_port = last};
    };
    PolicyTable table;
    table.chains["policy_chain_a"] = {.ingress = true, .allow = {tcp(8080, 8081)}};
    table.chains["policy_chain_b"] = {.ingress = true, .allow = {tcp(8081, 8082)}};
    // Its name comes before those that it leads to.
    table.chains["policy_chain_0"] = {.ingress = true,
                                      .both = {"policy_chain_a", "policy_chain_b"}};
    table.ingress[kFirst] = "policy_chain_0";
    Program(table);
    EXPECT_TRUE(IsCutOff(node.second, kFirst, 8080));
    EXPECT_TRUE(Reaches(node.second, kFirst, 8081));
    Program({});
    EXPECT_TRUE(Reaches(node.second, kFirst, 8080));
  });
}

// Users list their rules with it, and so does `muster doctor`.
TEST(PolicyDataplane, NftCanListTheRules) {
  InNetworkNamespace([] {
    ExpectOk(ApplyNft(HostRules(NodeNetworkConfig())));
    Program(Into({{.peers = kPeers,
                   .range = Ipv4Prefix::Parse("10.0.0.0/8"),
                   .except = {*Ipv4Prefix::Parse("10.1.0.0/16")},
                   .protocol = ServiceProtocol::kTcp,
                   .first_port = 80,
                   .last_port = 90}},
                 {kSecond}));
    const auto rules = ListNft();
    ASSERT_TRUE(rules) << rules.error().ToString();
    EXPECT_NE(rules->find("ip saddr 10.0.0.0/8 ip saddr != 10.1.0.0/16 ip saddr @policy_peers_1 "
                          "tcp dport 80-90 return"),
              std::string::npos)
        << *rules;
  });
}

uint32_t Below(Rng& rng, uint32_t bound) { return static_cast<uint32_t>(rng.Below(bound)); }

PolicyTable RandomTable(Rng& rng) {
  PolicyTable table;
  for (uint32_t i = 0; i < 4; ++i) {
    if (Below(rng, 3) == 0) continue;
    std::set<Ipv4>& peers = table.peers[std::string(kPolicyPeersPrefix) + std::to_string(i)];
    for (uint32_t p = Below(rng, 5); p > 0; --p) peers.insert({0x0A2A0002 + Below(rng, 8)});
  }
  for (const bool ingress : {true, false}) {
    std::vector<std::string> names;
    for (uint32_t i = 0; i < 3; ++i) {
      if (Below(rng, 3) == 0) continue;
      names.push_back(std::string(kPolicyChainPrefix) + (ingress ? "in" : "out") +
                      std::to_string(i));
      PolicyChain& chain = table.chains[names.back()];
      chain.ingress = ingress;
      for (uint32_t m = Below(rng, 3); m > 0; --m) {
        PolicyMatch& match = chain.allow.emplace_back();
        if (!table.peers.empty() && Below(rng, 2) == 0) match.peers = table.peers.begin()->first;
        match.protocol = static_cast<ServiceProtocol>(Below(rng, 3));
        match.first_port = match.last_port = static_cast<uint16_t>(Below(rng, 3));
      }
    }
    if (names.size() > 1 && Below(rng, 2) == 0) {
      table.chains[std::string(kPolicyChainPrefix) + (ingress ? "both_in" : "both_out")] = {
          .ingress = ingress, .both = names};
    }
    for (uint32_t a = Below(rng, 5); a > 0 && !names.empty(); --a)
      (ingress ? table.ingress : table.egress)[{0x0A2A0002 + Below(rng, 8)}] = names.back();
  }
  return table;
}

// Whatever was there before (also of an agent that was killed), the kernel has what is wanted, and
// a second pass writes nothing.
TEST(PolicyDataplane, TheKernelHasWhatIsWantedAfterAnyChange) {
  InNetworkNamespace([] {
    ExpectOk(ApplyNft(HostRules(NodeNetworkConfig())));
    Rng rng(7);
    PolicyDataplane dataplane = *PolicyDataplane::Open();
    for (int round = 0; round < 200; ++round) {
      if (round % 7 == 0) dataplane = *PolicyDataplane::Open();
      const PolicyTable want = RandomTable(rng);
      const auto applied = dataplane.Replace(want);
      ASSERT_TRUE(applied) << "round " << round << ": " << applied.error().ToString();
      NftSocket socket = *NftSocket::Open();
      ASSERT_EQ(*socket.ListAddresses(kIsolatedIn), want.ingress) << "round " << round;
      ASSERT_EQ(*socket.ListAddresses(kIsolatedOut), want.egress) << "round " << round;
      std::set<std::string> chains, sets;
      const auto all_chains = socket.ListChainNames(), all_sets = socket.ListSetNames();
      for (const std::string& name : *all_chains)
        if (name.starts_with(kPolicyChainPrefix)) chains.insert(name);
      for (const std::string& name : *all_sets)
        if (name.starts_with(kPolicyPeersPrefix)) sets.insert(name);
      ASSERT_EQ(chains.size(), want.chains.size()) << "round " << round;
      ASSERT_EQ(sets.size(), want.peers.size()) << "round " << round;
      for (const auto& [name, peers] : want.peers) {
        std::set<Ipv4> have;
        const auto addresses = socket.ListAddresses(name);
        for (const auto& [address, none] : *addresses) have.insert(address);
        ASSERT_EQ(have, peers) << "round " << round;
      }
      const auto again = dataplane.Replace(want);
      ASSERT_TRUE(again);
      ASSERT_EQ(again->transactions, 0U);
    }
  });
}

TEST(PolicyDataplane, ManyPeersTakeSeveralTransactionsAndOneMoreIsOneElement) {
  InNetworkNamespace([] {
    ExpectOk(ApplyNft(HostRules(NodeNetworkConfig())));
    PolicyTable table;
    for (int set = 0; set < 100; ++set) {
      std::set<Ipv4>& peers = table.peers[std::string(kPolicyPeersPrefix) + std::to_string(set)];
      for (uint32_t i = 0; i < 1000; ++i) peers.insert({0x0A2A0000 + i});
      table.chains[kIn].ingress = true;
      table.chains[kIn].allow.push_back(
          {.peers = std::string(kPolicyPeersPrefix) + std::to_string(set)});
    }
    for (uint32_t i = 2; i < 112; ++i) table.ingress[{0x0A2A0000 + i}] = kIn;
    PolicyDataplane dataplane = *PolicyDataplane::Open();
    const auto applied = dataplane.Replace(table);
    ASSERT_TRUE(applied) << applied.error().ToString();
    EXPECT_GT(applied->transactions, 1U);
    for (auto& [name, peers] : table.peers) peers.insert(kService);
    const Duration begin = RealClock().Monotonic();
    const auto changed = dataplane.Replace(table);
    EXPECT_LT(RealClock().Monotonic() - begin, seconds(1));
    ASSERT_TRUE(changed);
    EXPECT_EQ(changed->added, 100U);
    EXPECT_EQ(changed->chains, 0U);
    EXPECT_EQ(changed->transactions, 1U);
  });
}

TEST(PolicyDataplane, WithoutATableItSaysSo) {
  InNetworkNamespace([] {
    const auto opened = PolicyDataplane::Open();
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().reason(), Reason::kNotFound);
  });
}

}  // namespace
}  // namespace muster::agent
