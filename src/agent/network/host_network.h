// src/agent/network/host_network.h
//
// What the node's own network namespace needs so that pods can talk: IP forwarding, the bridge,
// routes that end at the node, and the nftables table `muster`. Everything is listed in
// `state_file` and taken back by RemoveHost().
//
// There is one of it in a network namespace, and it has one owner: the path of the owner's state
// file is the alias of the bridge, where every other muster sees it. It dies with the bridge.
//
// Life cycle: EnsureHost() at every start of the agent (it may find its own work of last time);
//             RemoveHost() from `muster down`.
// Thread:     blocking calls, for the spawner (single-threaded).
// Invariants: works without an uplink; nothing outside the bridge, our routes, the table `muster`
//             and ip_forward is touched; ip_forward gets back the value that the first EnsureHost()
//             found; what belongs to another owner is not touched.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "agent/network/address_ranges.h"
#include "agent/network/ipv4.h"
#include "base/status.h"

namespace muster::agent {

struct NodeNetworkConfig {
  std::string bridge = "muster0";
  Ipv4Prefix pod_range{{0x0A2A0000}, 16};  // 10.42.0.0/16, the whole cluster
  Ipv4Prefix node_range{{0x0A2A0000},
                        24};  // 10.42.0.0/24, this node's part; its first address is the bridge's
  Ipv4Prefix service_range{{0x0A2B0000}, 16};  // 10.43.0.0/16
  std::string state_file;                      // e.g. DIR/run/network.state

  void UseRanges(const AddressRanges& ranges) {
    pod_range = ranges.pods;
    node_range = ranges.NodeRange();
    service_range = ranges.services;
  }
  Ipv4 BridgeAddress() const { return Ipv4{node_range.Network().value + 1}; }
};

inline constexpr std::string_view kNftTable = "muster";
// On packets that came to a NodePort: the bit that kube-proxy uses for the same.
inline constexpr uint32_t kFromOutsideMark = 0x4000;

// AlreadyExists, with nothing changed, while another state file owns the network. An owner whose
// state file is gone owns nothing any more.
Status EnsureHost(const NodeNetworkConfig& config);
// Lets pods send frames to their node alone, until RemoveHost(): what network policies forbid does
// not go past the node's packet filter, as raw Ethernet or as IPv6 of the link. May be repeated.
Status FencePods(const NodeNetworkConfig& config);
// Also deletes the pods' links (kHostInterfacePrefix) that still exist. Ok if there is nothing. If
// another state file owns the network, only config.state_file is removed.
Status RemoveHost(const NodeNetworkConfig& config);

// The nft that is used: the one beside this program (a bundle brings its own), else the machine's;
// "" if there is none.
std::string NftProgram();
// The same, looked for in `own_directory` first ("": only the machine's).
std::string FindNft(const std::string& own_directory);

// Runs `nft -f -` with `rules` on its standard input. The error has what nft printed.
Status ApplyNft(std::string_view rules);

// Every table of this network namespace as nft prints it.
Result<std::string> ListNft();

// The text of the whole table without Services, replacing the one that is there (pure). What
// Services add to it: nft_elements.h.
std::string HostRules(const NodeNetworkConfig& config);

}  // namespace muster::agent
