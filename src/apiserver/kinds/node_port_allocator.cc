#include "apiserver/kinds/node_port_allocator.h"

namespace muster::apiserver {

std::optional<int64_t> NodePortAllocator::AllocateNext() {
  for (int64_t tries = kFirstChosenNodePort; tries <= kLastNodePort; ++tries) {
    cursor_ = cursor_ < kLastNodePort ? cursor_ + 1 : kFirstChosenNodePort;
    if (Allocate(cursor_)) return cursor_;
  }
  for (int64_t port = kFirstNodePort; port < kFirstChosenNodePort; ++port)
    if (Allocate(port)) return port;
  return std::nullopt;
}

}  // namespace muster::apiserver
