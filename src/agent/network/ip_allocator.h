// src/agent/network/ip_allocator.h
//
// IpAllocator: which addresses of the node's range are taken.
//
// Life cycle: built at start from the pods that exist (Take each podIP), then Allocate and Release.
// Thread:     one owner.
// Invariants: never gives the network, the gateway (first) or the broadcast address, nor an address
//             twice; gives the lowest free one, so a run is repeatable.

#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "agent/network/ipv4.h"
#include "base/status.h"

namespace muster::agent {

class IpAllocator {
 public:
  // REQUIRES: 16 <= range.length <= 30.
  explicit IpAllocator(Ipv4Prefix range);

  Result<Ipv4> Allocate();     // TooManyRequests when all are taken
  Status Take(Ipv4 address);   // Conflict if taken; Invalid if it is reserved or outside the range
  void Release(Ipv4 address);  // no effect if it is free or not ours
  bool IsTaken(Ipv4 address) const;

  Ipv4 Gateway() const { return Ipv4{range_.Network().value + 1}; }
  size_t Free() const { return free_; }
  size_t Capacity() const;

 private:
  // The index of a usable address, or nullopt.
  std::optional<size_t> Index(Ipv4 address) const;

  Ipv4Prefix range_;
  std::vector<bool> taken_;  // by offset from the network address
  size_t free_ = 0;
};

}  // namespace muster::agent
