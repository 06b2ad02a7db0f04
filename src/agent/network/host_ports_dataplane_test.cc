// hostPorts with real packets: who reaches them where.

#include <netinet/in.h>
#include <poll.h>

#include "agent/network/connection_tracking.h"
#include "agent/network/node_test_support.h"

namespace muster::agent {
namespace {

const Ipv4 kUplink = *Ipv4::Parse("192.0.2.1"), kOutside = *Ipv4::Parse("192.0.2.9");
const Ipv4 kLoopback{INADDR_LOOPBACK};
constexpr uint16_t kPort = 8080, kInside = 80;

ServiceFrontend HostPort(Ipv4 address, ServiceProtocol protocol = ServiceProtocol::kTcp) {
  return {address, protocol, kPort, true};
}

// A node with an uplink, and a machine at its other end.
class UplinkedNode : public TwoPods {
 public:
  UplinkedNode() {
    ExpectOk(netlink().EnsureBridge("uplink0", {kUplink, 24}));
    PodAttachment link;
    link.netns_fd = outside.fd();
    link.host_interface = "wire0";
    link.bridge = "uplink0";
    link.address = kOutside;
    link.gateway = kUplink;
    ExpectOk(netlink().AttachPod(link));
  }
  NetworkNamespace outside;
};

int Datagrams(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const sockaddr_in here = ToSocketAddress(Ipv4{}, port);
  CHECK(bind(fd, reinterpret_cast<const sockaddr*>(&here), sizeof here) == 0);
  return fd;
}

int Sender(Ipv4 address, uint16_t port) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const sockaddr_in there = ToSocketAddress(address, port);
  CHECK(connect(fd, reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0);
  return fd;
}

// Whether one has come, and from whom.
bool Arrived(int fd, Ipv4* from = nullptr, int patience_ms = 3000) {
  pollfd readable{fd, POLLIN, 0};
  char byte = 0;
  sockaddr_in peer{};
  socklen_t size = sizeof peer;
  if (poll(&readable, 1, patience_ms) != 1 ||
      recvfrom(fd, &byte, 1, 0, reinterpret_cast<sockaddr*>(&peer), &size) != 1)
    return false;
  if (from != nullptr) *from = Ipv4{ntohl(peer.sin_addr.s_addr)};
  return true;
}

TEST(HostPorts, LeadToThePodFromEverywhereAndKeepTheClientsAddress) {
  AsNode([] {
    UplinkedNode node;
    const Ipv4 bridge = node.config().BridgeAddress();
    const int in_first = node.first.Inside([] { return Listen(kInside); });
    ExpectOk(ReplaceServices({{HostPort({}), {.endpoints = {{kFirst, kInside}}}}}));
    Ipv4 from;
    const auto reaches = [&](Ipv4 address) {
      from = {};
      EXPECT_EQ(Connect(address, kPort, in_first, &from), 0) << address.ToString();
      return from;
    };
    EXPECT_EQ(node.outside.Inside([&] { return reaches(kUplink); }), kOutside);
    EXPECT_EQ(node.second.Inside([&] { return reaches(kUplink); }), kSecond);
    EXPECT_EQ(node.second.Inside([&] { return reaches(bridge); }), kSecond);
    // From itself, and from the node by an address that no answer could find: as the node.
    EXPECT_EQ(node.first.Inside([&] { return reaches(kUplink); }), bridge);
    EXPECT_EQ(reaches(kLoopback), bridge);
    EXPECT_EQ(reaches(bridge), bridge);
    EXPECT_EQ(reaches(kUplink), kUplink);
    EXPECT_EQ(Connect(kUplink, kPort + 1), ECONNREFUSED);
    EXPECT_EQ(node.second.Inside([&] { return Connect(kFirst, kPort); }), ECONNREFUSED);
    ExpectOk(ReplaceServices({}));
    EXPECT_EQ(Connect(kLoopback, kPort), ECONNREFUSED);
    EXPECT_EQ(node.outside.Inside([] { return Connect(kUplink, kPort); }), ECONNREFUSED);
  });
}

TEST(HostPorts, OfOneAddressAreReachedThereAlone) {
  AsNode([] {
    UplinkedNode node;
    const Ipv4 bridge = node.config().BridgeAddress();
    const int in_first = node.first.Inside([] { return Listen(kInside); });
    const ServiceBackend pod{.endpoints = {{kFirst, kInside}}};
    ExpectOk(ReplaceServices({{HostPort(kUplink), pod}}));
    EXPECT_EQ(node.outside.Inside([&] { return Connect(kUplink, kPort, in_first); }), 0);
    EXPECT_EQ(Connect(kUplink, kPort, in_first), 0);
    EXPECT_EQ(Connect(bridge, kPort), ECONNREFUSED);
    EXPECT_EQ(Connect(kLoopback, kPort), ECONNREFUSED);
    ExpectOk(ReplaceServices({{HostPort(kLoopback), pod}}));
    EXPECT_EQ(Connect(kLoopback, kPort, in_first), 0);
    EXPECT_EQ(Connect(kUplink, kPort), ECONNREFUSED);
    // Not the node's: nobody's connections to others are taken.
    ExpectOk(ReplaceServices({{HostPort(kOutside), pod}}));
    EXPECT_EQ(node.second.Inside([] { return Connect(kOutside, kPort); }), ECONNREFUSED);
  });
}

// Whoever routes 127.0.0.1 to the node gets nothing there.
TEST(HostPorts, NobodyElseReachesTheNodesLoopback) {
  AsNode([] {
    UplinkedNode node;
    const int in_first = Datagrams(kInside);  // of the node
    const int in_pod = node.first.Inside([] { return Datagrams(kInside); });
    ExpectOk(ReplaceServices(
        {{HostPort(kLoopback, ServiceProtocol::kUdp), {.endpoints = {{kFirst, kInside}}}}}));
    for (const NetworkNamespace* who : {&node.outside, &node.second}) {
      who->Inside([] {
        // As root there, who makes it no address of his own.
        std::ofstream("/proc/sys/net/ipv4/conf/eth0/route_localnet") << "1" << std::flush;
        EXPECT_EQ(system("ip addr del 127.0.0.1/8 dev lo 2>/dev/null;"
                         "ip route flush table local 127.0.0.0/8 2>/dev/null;"
                         "ip route add 127.0.0.1/32 via $(ip route show default | cut -d' ' -f3)"),
                  0);
        for (const uint16_t port : {kInside, kPort}) {
          const int fd = Sender(kLoopback, port);
          EXPECT_EQ(send(fd, "x", 1, 0), 1);
          close(fd);
        }
        return 0;
      });
    }
    EXPECT_FALSE(Arrived(in_first, nullptr, 200));
    EXPECT_FALSE(Arrived(in_pod, nullptr, 0));
    const int own = Sender(kLoopback, kPort);
    EXPECT_EQ(send(own, "x", 1, 0), 1);
    EXPECT_TRUE(Arrived(in_pod));
  });
}

// One client that goes on sending from one port: before there was a pod, to it, to the next one.
TEST(HostPorts, AFlowOfDatagramsFollowsThePods) {
  AsNode([] {
    UplinkedNode node;
    const int in_first = node.first.Inside([] { return Datagrams(kInside); });
    const int in_second = node.second.Inside([] { return Datagrams(kInside); });
    const ServiceFrontend port = HostPort({}, ServiceProtocol::kUdp);
    ServiceDataplane dataplane = *ServiceDataplane::Open();
    const auto apply = [&](const ServiceBackend& backend) {
      const auto applied = dataplane.Apply({{port, backend}});
      ASSERT_TRUE(applied) << applied.error().ToString();
      ASSERT_TRUE(ForgetDatagrams(applied->lost_datagram_endpoints));
    };
    const int here = Datagrams(kPort);  // a program of the node has it first
    const int client = node.outside.Inside([] { return Sender(kUplink, kPort); });
    ASSERT_EQ(send(client, "0", 1, 0), 1);
    EXPECT_TRUE(Arrived(here));
    apply({.endpoints = {{kFirst, kInside}}});
    ASSERT_EQ(send(client, "1", 1, 0), 1);
    Ipv4 from;
    EXPECT_TRUE(Arrived(in_first, &from));
    EXPECT_EQ(from, kOutside);
    apply({.endpoints = {{kSecond, kInside}}});
    ASSERT_EQ(send(client, "2", 1, 0), 1);
    EXPECT_TRUE(Arrived(in_second));
    apply({});
    ASSERT_EQ(send(client, "3", 1, 0), 1);
    EXPECT_TRUE(Arrived(here));
    EXPECT_FALSE(Arrived(in_first, nullptr, 0));
  });
}

TEST(HostPorts, SctpToo) {
  AsNode([] {
    UplinkedNode node;
    const auto open = [] { return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_SCTP); };
    const int server = node.first.Inside(open);
    if (server < 0) GTEST_SKIP() << "this kernel has no SCTP";
    const sockaddr_in at = ToSocketAddress({}, kInside), to = ToSocketAddress(kUplink, kPort);
    ASSERT_EQ(bind(server, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    ASSERT_EQ(listen(server, 4), 0);
    ExpectOk(ReplaceServices(
        {{HostPort({}, ServiceProtocol::kSctp), {.endpoints = {{kFirst, kInside}}}}}));
    const int client = node.outside.Inside(open);
    EXPECT_EQ(connect(client, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  });
}

// A Service and a pod want one port of the node.
TEST(HostPorts, ComeBeforeNodePorts) {
  AsNode([] {
    UplinkedNode node;
    const int in_first = node.first.Inside([] { return Listen(kInside); });
    const int in_second = node.second.Inside([] { return Listen(kInside); });
    const ServiceFrontend node_port{{}, ServiceProtocol::kTcp, kPort};
    const ServiceBackend service{.endpoints = {{kSecond, kInside}}};
    ExpectOk(ReplaceServices(
        {{node_port, service}, {HostPort({}), {.endpoints = {{kFirst, kInside}}}}}));
    Ipv4 from;
    EXPECT_EQ(node.outside.Inside([&] { return Connect(kUplink, kPort, in_first, &from); }), 0);
    EXPECT_EQ(from, kOutside);
    from = {};
    ExpectOk(ReplaceServices({{node_port, service}}));
    EXPECT_EQ(node.outside.Inside([&] { return Connect(kUplink, kPort, in_second, &from); }), 0);
    EXPECT_EQ(from, kOutside);
  });
}

}  // namespace
}  // namespace muster::agent
