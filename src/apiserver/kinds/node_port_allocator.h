// src/apiserver/kinds/node_port_allocator.h
//
// NodePortAllocator: the ports of every node that lead to Services. The services in the store are
// the truth; this set is derived from them at start and kept beside them.
//
// Life cycle: owned by the ServiceStrategy.
// Thread:     the loop thread.
// Invariants: a number has one owner, whatever its protocol, as upstream; a freed number is not
//             given out again before the others had their turn.

#pragma once

#include <cstdint>
#include <optional>
#include <set>

namespace muster::apiserver {

inline constexpr int64_t kFirstNodePort = 30000;
inline constexpr int64_t kLastNodePort = 32767;
// The first ones are for those who ask for a number: others are given when nothing else is left.
inline constexpr int64_t kFirstChosenNodePort = 30086;

class NodePortAllocator {
 public:
  // nullopt when none is left.
  std::optional<int64_t> AllocateNext();
  // False: taken. REQUIRES: a number of the range.
  bool Allocate(int64_t port) { return taken_.insert(port).second; }
  void Release(int64_t port) { taken_.erase(port); }

 private:
  int64_t cursor_ = kFirstChosenNodePort - 1;
  std::set<int64_t> taken_;
};

}  // namespace muster::apiserver
