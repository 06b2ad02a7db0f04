// src/agent/network/node_test_support.h
//
// A node with two pods, for tests with real packets.

#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "agent/network/host_network.h"
#include "agent/network/netlink.h"
#include "agent/network/netns_test_support.h"
#include "agent/network/service_dataplane.h"

namespace muster::agent {

inline const Ipv4 kFirst = *Ipv4::Parse("10.42.0.2");
inline const Ipv4 kSecond = *Ipv4::Parse("10.42.0.3");
inline const Ipv4 kService = *Ipv4::Parse("10.43.0.10");

inline const ServiceFrontend kHttp{kService, ServiceProtocol::kTcp, 80};

inline void ExpectOk(const Status& status) { EXPECT_TRUE(status.ok()) << status.ToString(); }

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
class TwoPods {
 public:
  TwoPods() {
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

// As the spawner does at its first request.
inline Status ReplaceServices(const ServiceTable& table) {
  ASSIGN_OR_RETURN(ServiceDataplane dataplane, ServiceDataplane::Open());
  const auto applied = dataplane.Replace(table);
  return applied ? Status::Ok() : applied.error();
}

}  // namespace muster::agent
