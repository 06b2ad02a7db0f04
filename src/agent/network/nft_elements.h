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
//
// A CHAIN picks one of as many endpoints as its name says, at random ("random_3") or by the
// client's address ("client_3"), with "_node" for NodePorts. Rules do not grow with the number of
// Services, and are such as nft writes itself, so that it can list them.
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
  kHostIpPorts
};
inline constexpr std::array kNftSets = {NftSet::kServices,  NftSet::kNodePorts,
                                        NftSet::kEndpoints, NftSet::kNodeEndpoints,
                                        NftSet::kHostPorts, NftSet::kHostIpPorts};
std::string_view NameOf(NftSet set);
size_t KeyWords(NftSet set);
bool HasVerdict(NftSet set);

// Where a verdict leads.
struct ServiceChain {
  uint32_t endpoints = 0;  // 0: packets are dropped
  bool by_client = false;
  bool node_port = false;

  std::string Name() const;
  // nullopt: not the name of one.
  static std::optional<ServiceChain> Parse(std::string_view name);
  // Not made and deleted with its users.
  bool IsFixed() const { return endpoints == 0; }
  auto operator<=>(const ServiceChain&) const = default;
};

// Of packets that no endpoint may have.
inline constexpr std::string_view kDropChain = "no_endpoint";

// One element as the kernel has it: words in the order and byte order of its registers.
struct NftElement {
  NftSet set = NftSet::kServices;
  std::array<uint32_t, 4> key = {};
  std::array<uint32_t, 2> data = {};  // an address and a port, where it has no verdict
  ServiceChain chain = {};
  auto operator<=>(const NftElement&) const = default;
};

// Sorted.
using NftElements = std::vector<NftElement>;
NftElements ElementsOf(const ServiceFrontend& frontend, const ServiceBackend& backend);
// nullopt: the element is of no Service (a protocol that is none).
std::optional<ServiceFrontend> FrontendOf(const NftElement& element);
// REQUIRES: an element without a verdict.
ServiceEndpoint EndpointOf(const NftElement& element);

// What has to be deleted and added to make `have` equal to `want`.
struct NftChange {
  NftElements remove, add;
  bool empty() const { return remove.empty() && add.empty(); }
};
NftChange Difference(const NftElements& have, const NftElements& want);

}  // namespace muster::agent
