// src/net/sockets.h
//
// Internal to net. The few socket calls that we need, as Results. All descriptors are non-blocking
// and close-on-exec.

#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "net/io_thread.h"

namespace muster::net {

inline constexpr int kListenBacklog = 4096;

// Owns a descriptor until released.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.Release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept;
  ~UniqueFd() { Reset(); }
  int get() const { return fd_; }
  int Release();
  void Reset();

 private:
  int fd_ = -1;
};

struct Listening {
  UniqueFd fd;
  uint16_t port = 0;
  std::string address;  // "127.0.0.1:6443"
};
Result<Listening> ListenOn(const std::string& ip, uint16_t port);
// On a socket that is bound already.
Result<Listening> ListenAt(UniqueFd bound);

// EAGAIN and failures alike give -1 with errno.
int AcceptOne(int listening_fd, std::string& peer_address);

// Begins to connect; readiness to write says that it is decided.
Result<UniqueFd> BeginConnect(const SocketAddress& address);

// No delay, and keep-alive probes that notice a dead peer within a minute.
void SetStreamOptions(int fd);

}  // namespace muster::net
