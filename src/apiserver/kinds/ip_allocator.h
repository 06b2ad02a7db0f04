// src/apiserver/kinds/ip_allocator.h
//
// IpAllocator: the IPv4 addresses of the service range. The services in the store are the truth;
// this set is derived from them at start and kept beside them.
//
// Life cycle: owned by the ServiceStrategy.
// Thread:     the loop thread.
// Invariants: the network and broadcast addresses are never given out; an address has one owner; a
//             freed address is not given out again before the others had their turn.

#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "base/status.h"

namespace muster::apiserver {

class IpAllocator {
 public:
  // "10.43.0.0/16". BadRequest if it is not an IPv4 range of 4 addresses or more.
  static Result<IpAllocator> Make(std::string_view cidr);

  // Any free one; ServiceUnavailable when none is left.
  Result<std::string> AllocateNext();
  // BadRequest: not in the range, or taken ("provided IP is already allocated").
  Status Allocate(std::string_view address);
  void Release(std::string_view address);
  std::string First() const;  // of default/kubernetes

 private:
  IpAllocator(uint32_t base, uint32_t size) : base_(base), size_(size) {}

  uint32_t base_;
  uint32_t size_;
  uint32_t cursor_ = 0;
  std::set<uint32_t> taken_;  // offsets
};

}  // namespace muster::apiserver
