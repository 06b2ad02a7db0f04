#include "agent/network/pod_api_socket.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "agent/network/socket_address.h"
#include "agent/runtime/files.h"

namespace muster::agent {

Result<UniqueFd> BindPodApi(Ipv4 bridge_address, uint16_t port) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return SystemError("make", "a socket", errno);
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  setsockopt(fd.get(), IPPROTO_IP, IP_FREEBIND, &on, sizeof on);
  const sockaddr_in here = ToSocketAddress(bridge_address, port);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&here), sizeof here) == 0) return fd;
  // Two that listen, one of them on every address, are found out here already.
  if (errno == EADDRINUSE && port != 0) return BindPodApi(bridge_address, 0);
  return SystemError("bind", bridge_address.ToString(), errno);
}

Result<uint16_t> PortOfSocket(int fd) {
  sockaddr_in here{};
  socklen_t size = sizeof here;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&here), &size) != 0)
    return SystemError("read the address of", "a socket", errno);
  return ntohs(here.sin_port);
}

}  // namespace muster::agent
