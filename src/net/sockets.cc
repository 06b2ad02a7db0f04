#include "net/sockets.h"

#include <fcntl.h>
#include <cerrno>
#include <cstring>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace muster::net {
namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

bool MakeAddress(const std::string& ip, uint16_t port, Address& out) {
  auto* v4 = reinterpret_cast<sockaddr_in*>(&out.storage);
  if (inet_pton(AF_INET, ip.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    out.size = sizeof *v4;
    return true;
  }
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&out.storage);
  if (inet_pton(AF_INET6, ip.c_str(), &v6->sin6_addr) != 1) return false;
  v6->sin6_family = AF_INET6;
  v6->sin6_port = htons(port);
  out.size = sizeof *v6;
  return true;
}

uint16_t PortOf(const Address& address) {
  if (address.storage.ss_family == AF_INET) {
    return ntohs(reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_port);
}

std::string Printed(const Address& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.storage.ss_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_addr, text,
              sizeof text);
    return fmt::format("{}:{}", text, PortOf(address));
  }
  inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_addr, text,
            sizeof text);
  return fmt::format("[{}]:{}", text, PortOf(address));
}

void SetInt(int fd, int level, int option, int value) {
  setsockopt(fd, level, option, &value, sizeof value);
}

Result<Listening> Describe(UniqueFd fd) {
  Listening out;
  Address address;
  address.size = sizeof address.storage;
  if (getsockname(fd.get(), address.get(), &address.size) != 0) {
    return Error(Reason::kInternalError, "getsockname: {}", strerror(errno));
  }
  out.fd = std::move(fd);
  out.port = PortOf(address);
  out.address = Printed(address);
  return out;
}

}  // namespace

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  if (this != &other) {
    Reset();
    fd_ = other.Release();
  }
  return *this;
}
int UniqueFd::Release() { return std::exchange(fd_, -1); }
void UniqueFd::Reset() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

Result<Listening> ListenOn(const std::string& ip, uint16_t port) {
  Address address;
  if (!MakeAddress(ip, port, address)) {
    return Error(Reason::kInvalid, "listen address {:?}: expected an IP address, e.g. 127.0.0.1",
                 ip);
  }
  Listening out;
  out.fd =
      UniqueFd(socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (out.fd.get() < 0) return Error(Reason::kInternalError, "socket: {}", strerror(errno));
  SetInt(out.fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (ip == "::") SetInt(out.fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (bind(out.fd.get(), address.get(), address.size) != 0 ||
      listen(out.fd.get(), kListenBacklog) != 0) {
    std::string hint =
        errno == EADDRINUSE ? " (another process listens there: choose another port)" : "";
    return Error(Reason::kServiceUnavailable, "cannot listen on {}: {}{}", Printed(address),
                 strerror(errno), hint);
  }
  return Describe(std::move(out.fd));
}

Result<Listening> ListenAt(UniqueFd bound) {
  if (fcntl(bound.get(), F_SETFL, fcntl(bound.get(), F_GETFL) | O_NONBLOCK) != 0 ||
      listen(bound.get(), kListenBacklog) != 0) {
    return Error(Reason::kServiceUnavailable, "cannot listen on a given socket: {}",
                 strerror(errno));
  }
  return Describe(std::move(bound));
}

int AcceptOne(int listening_fd, std::string& peer_address) {
  Address address;
  address.size = sizeof address.storage;
  int fd = accept4(listening_fd, address.get(), &address.size, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) return -1;
  peer_address = Printed(address);
  SetStreamOptions(fd);
  return fd;
}

Result<UniqueFd> BeginConnect(const SocketAddress& target) {
  Address address;
  if (!MakeAddress(target.ip, target.port, address)) {
    return Error(Reason::kServiceUnavailable, "{:?} is not an IP address", target.ip);
  }
  UniqueFd fd(socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) return Error(Reason::kServiceUnavailable, "socket: {}", strerror(errno));
  SetStreamOptions(fd.get());
  if (connect(fd.get(), address.get(), address.size) != 0 && errno != EINPROGRESS) {
    return Error(Reason::kServiceUnavailable, "{}", strerror(errno));
  }
  return fd;
}

void SetStreamOptions(int fd) {
  SetInt(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  SetInt(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  SetInt(fd, IPPROTO_TCP, TCP_KEEPIDLE, 30);
  SetInt(fd, IPPROTO_TCP, TCP_KEEPINTVL, 10);
  SetInt(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

}  // namespace muster::net
