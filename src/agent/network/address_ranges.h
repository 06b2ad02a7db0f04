// src/agent/network/address_ranges.h
//
// AddressRanges: which addresses pods and Services have. A cluster keeps the ranges that it began
// with, because Services hold their addresses; a new one takes ranges that the machine does not
// use, so that a VPN or a local network stays reachable.
//
// Life cycle: chosen at the first `muster up`, kept in DIR/address-ranges.
// Thread:     any (values); Load and Save block.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/network/ipv4.h"
#include "base/status.h"

namespace muster::agent {

// Below DIR.
inline constexpr std::string_view kAddressRangesFile = "address-ranges";

struct AddressRanges {
  Ipv4Prefix pods{{0x0A2A0000}, 16};      // 10.42.0.0/16, of the whole cluster
  Ipv4Prefix services{{0x0A2B0000}, 16};  // 10.43.0.0/16

  // This node's part of `pods`; its first address is the bridge's and the DNS server's.
  Ipv4Prefix NodeRange() const { return {pods.Network(), 24}; }
  Ipv4 DnsAddress() const { return Ipv4{pods.Network().value + 1}; }
  // Of the Service default/kubernetes.
  Ipv4 ApiAddress() const { return Ipv4{services.Network().value + 1}; }
  bool operator==(const AddressRanges&) const = default;
};

// The first ranges that overlap nothing of `taken`: the usual ones where they are free, then other
// private networks, then 100.64.0.0/10 and 198.18.0.0/15. nullopt if there are no two.
std::optional<AddressRanges> ChooseAddressRanges(const std::vector<Ipv4Prefix>& taken);

// What the data directory says; nullopt if it says nothing, Invalid names the file that is damaged.
Result<std::optional<AddressRanges>> LoadAddressRanges(const std::string& data_dir);
Status SaveAddressRanges(const std::string& data_dir, const AddressRanges& ranges);

}  // namespace muster::agent
