// src/agent/network/nft_elements.h
//
// A ServiceTable as elements of the sets and maps of the nftables table `muster`, and back from
// what the kernel lists. Pure.
//
//   services        address . protocol . port            : goto CHAIN
//   endpoints       address . protocol . port . number   : address . port
//   nodeports, node_endpoints: the same for NodePorts, without the address
//   hostports       protocol . port                      : address . port
//   host_ip_ports   address . protocol . port            : address . port
//   client_endpoints, node_client_endpoints: as endpoints, but of frontends with affinity
//                   ... . number                         : jump CHAIN
//   affinity        address . protocol . port . client   : address . port
//   clients         the same keys, half a second less, without data
//   node_affinity, node_clients: the same for NodePorts, without the address
//
// A CHAIN picks one of as many endpoints as its name says at random ("random_3"), or first looks
// which one the client has had in the last seconds ("client_3_10800"); one more for each endpoint
// notes the client ("to_10.42.0.2_8080_10800"). With "_node" they are for NodePorts. Rules do not
// grow with the number of Services, and are such as nft can list and read.
// Of affinity and clients the kernel puts in who comes and forgets who does not; what leads to
// endpoints that are gone we take out. Who is in `clients` is in `affinity`, at any moment.
//
// Thread: any (pure).

#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/network/service_table.h"

namespace muster::agent {

enum class NftSet : uint8_t {
  kServices,
  kNodePorts,
  kEndpoints,
  kNodeEndpoints,
  kHostPorts,
  kHostIpPorts,
  kClientEndpoints,
  kNodeClientEndpoints,
  kAffinity,
  kNodeAffinity,
  kClients,
  kNodeClients
};
// Those that hold what is wanted.
inline constexpr std::array kNftSets = {NftSet::kServices,        NftSet::kNodePorts,
                                        NftSet::kEndpoints,       NftSet::kNodeEndpoints,
                                        NftSet::kHostPorts,       NftSet::kHostIpPorts,
                                        NftSet::kClientEndpoints, NftSet::kNodeClientEndpoints};
std::string_view NameOf(NftSet set);
size_t KeyWords(NftSet set);
bool HasVerdict(NftSet set);
bool HasData(NftSet set);  // an address and a port

inline constexpr uint32_t kKeptChainEndpoints = 16;

// Where a verdict leads.
struct ServiceChain {
  uint32_t endpoints = 0;  // 0, and not `to` either: packets are dropped
  uint32_t affinity_seconds = 0;
  bool node_port = false;
  ServiceEndpoint to = {};  // notes the client of this endpoint

  std::string Name() const;
  // nullopt: not the name of one.
  static std::optional<ServiceChain> Parse(std::string_view name);
  // Not made and deleted with its users.
  bool IsFixed() const { return endpoints == 0 && !IsOfEndpoint(); }
  bool IsOfEndpoint() const { return to.port != 0; }
  // Always there: for a new chain the kernel looks at where every Service leads, which takes 5 ms
  // of 5,000 of them, and most Services have few endpoints.
  bool IsKept() const {
    return affinity_seconds == 0 && endpoints > 0 && endpoints <= kKeptChainEndpoints;
  }
  auto operator<=>(const ServiceChain&) const = default;
};

// Of packets that no endpoint may have.
inline constexpr std::string_view kDropChain = "no_endpoint";

// One element as the kernel has it: words in the order and byte order of its registers.
struct NftElement {
  NftSet set = NftSet::kServices;
  std::array<uint32_t, 4> key = {};
  std::array<uint32_t, 2> data = {};
  ServiceChain chain = {};
  auto operator<=>(const NftElement&) const = default;
};

// Sorted.
using NftElements = std::vector<NftElement>;
NftElements ElementsOf(const ServiceFrontend& frontend, const ServiceBackend& backend);
// As the kernel has it in a register or a packet.
std::array<uint32_t, 2> DataOf(const ServiceEndpoint& endpoint);
// nullopt: the element is of no Service (a protocol that is none).
std::optional<ServiceFrontend> FrontendOf(const NftElement& element);
// REQUIRES: HasData().
ServiceEndpoint EndpointOf(const NftElement& element);

// What has to be deleted and added to make `have` equal to `want`.
struct NftChange {
  NftElements remove, add;
  bool empty() const { return remove.empty() && add.empty(); }
};
NftChange Difference(const NftElements& have, const NftElements& want);

}  // namespace muster::agent
