// src/agent/network/ipv4.h
//
// IPv4 addresses and ranges as values.
//
// Thread:     any (values).
// Invariants: `value` is in host byte order, so that addresses compare and count as numbers.

#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::agent {

struct Ipv4 {
  uint32_t value = 0;

  static std::optional<Ipv4> Parse(std::string_view text);  // dotted quad, no leading zeros
  std::string ToString() const;
  bool IsUnset() const { return value == 0; }
  auto operator<=>(const Ipv4&) const = default;
};

// An address with the length of its network, e.g. 10.42.0.1/24. As a range it is the whole network
// around it.
struct Ipv4Prefix {
  Ipv4 address;
  int length = 32;  // 0..32

  static std::optional<Ipv4Prefix> Parse(std::string_view text);  // "10.42.0.0/24"
  std::string ToString() const;
  Ipv4 Network() const;    // first address
  Ipv4 Broadcast() const;  // last address
  bool Contains(Ipv4 other) const;
  bool Overlaps(const Ipv4Prefix& other) const {
    return Contains(other.Network()) || other.Contains(Network());
  }
  auto operator<=>(const Ipv4Prefix&) const = default;
};

}  // namespace muster::agent
