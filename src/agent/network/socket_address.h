// src/agent/network/socket_address.h
//
// IPv4 addresses as the socket calls want them.

#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

#include "agent/network/ipv4.h"

namespace muster::agent {

inline sockaddr_in ToSocketAddress(Ipv4 address, uint16_t port) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_addr.s_addr = htonl(address.value);
  result.sin_port = htons(port);
  return result;
}

inline const sockaddr* AsSockaddr(const sockaddr_in& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

}  // namespace muster::agent
