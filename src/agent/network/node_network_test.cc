// netlink.h and host_network.h with real packets, inside network namespaces.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "agent/network/node_test_support.h"

namespace muster::agent {
namespace {

std::string HostFile(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
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
    TwoPods node;
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

// What a link that is not ready yet loses is only sent again after a second.
TEST(NodeNetwork, TheFirstPacketOfAPodArrives) {
  InNetworkNamespace([] {
    TwoPods node;
    constexpr timeval kBeforeTheNextTry{.tv_usec = 900'000};
    for (uint32_t i = 10; i < 18; ++i) {
      NetworkNamespace pod;
      node.Attach(pod, Ipv4{kFirst.value + i}, std::to_string(i));
      EXPECT_EQ(pod.Inside([&] { return SendDatagram(kFirst, kBeforeTheNextTry); }), ECONNREFUSED);
    }
  });
}

TEST(NodeNetwork, WhatDoesNotExistIsRefused) {
  AsNode([] {
    TwoPods node;
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

TEST(NodeNetwork, EnsureHostMayBeRepeatedAndKeepsTheServices) {
  AsNode([] {
    TwoPods node;
    const int in_first = node.first.Inside([] { return Listen(8080); });
    ExpectOk(ReplaceServices({{kHttp, {.endpoints = {{kFirst, 8080}}}}}));
    ExpectOk(EnsureHost(node.config()));
    EXPECT_EQ(Connect(kService, 80), 0);
    close(in_first);
  });
}

TEST(NodeNetwork, AttachReplacesALinkThatACrashLeftBehind) {
  AsNode([] {
    TwoPods node;
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
    TwoPods node;
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
      TwoPods node;
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
    TwoPods node;
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
    ExpectOk(ReplaceServices({{kHttp, {.endpoints = {{kFirst, 8080}}}}}));
    EXPECT_EQ(Connect(kService, 80), 0);
    close(in_first);
  });
}

TEST(NodeNetwork, AnOwnerIsTheSameByAnyPathAndGoesWithItsStateFile) {
  AsNode([] {
    TwoPods node;
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

}  // namespace
}  // namespace muster::agent
