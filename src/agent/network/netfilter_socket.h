// src/agent/network/netfilter_socket.h
//
// What nftables and connection tracking have in common: a netlink socket, answers of many messages
// and their attributes.
//
// Thread: any; blocking (the kernel answers at once).

#pragma once

#include <linux/netlink.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "agent/network/netlink_request.h"
#include "agent/runtime/unique_fd.h"
#include "base/status.h"
#include "base/task.h"

namespace muster::agent {

// Bound to the network namespace of the caller.
Result<UniqueFd> OpenNetfilter();

// Asks, and gives each message of type `wanted` without its headers. 0 or an errno; EINTR: what was
// listed changed meanwhile, so ask again.
int DumpNetfilter(int fd, NetlinkRequest& request, uint16_t wanted,
                  Function<void(const char* attributes, size_t size)> visit);

// visit(type, value, size) for each of the attributes.
template <class Visit>
void ForEachAttribute(const void* begin, size_t size, Visit visit) {
  const auto* at = static_cast<const char*>(begin);
  while (size >= NLA_HDRLEN) {
    nlattr header{};
    std::memcpy(&header, at, sizeof header);
    if (header.nla_len < NLA_HDRLEN || header.nla_len > size) return;
    visit(header.nla_type & NLA_TYPE_MASK, at + NLA_HDRLEN,
          static_cast<size_t>(header.nla_len - NLA_HDRLEN));
    const size_t step = NLA_ALIGN(header.nla_len);
    if (step >= size) return;
    at += step;
    size -= step;
  }
}

}  // namespace muster::agent
