// src/agent/network/netns_test_support.h
//
// For tests that change links, routes or rules, or that start and kill processes: each runs in a
// child process inside network, PID and mount namespaces of its own, so the machine stays as it is,
// no packet leaves, a stray signal hits nobody else, and what a test leaves running ends with it.

#pragma once

#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include <gtest/gtest.h>

#include "agent/network/ipv4.h"
#include "agent/network/netlink.h"
#include "agent/network/socket_address.h"
#include "base/check.h"

namespace muster::agent {

// Why network namespaces cannot be made here; "" if they can.
inline std::string WhyNoNetworkNamespace() {
  if (geteuid() != 0) return "needs root to make network namespaces";
  const pid_t child = fork();
  if (child == 0) _exit(unshare(CLONE_NEWNET) == 0 ? 0 : 1);
  int state = 0;
  waitpid(child, &state, 0);
  return state == 0 ? "" : "this machine does not allow unshare(CLONE_NEWNET)";
}

// The first process of the new PID namespace; `body` runs there.
template <class Body>
[[noreturn]] void RunInNamespaces(Body body) {
  CHECK(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0);
  CHECK(mount("proc", "/proc", "proc", 0, nullptr) == 0);
  // As on every machine: refusals of the node's own packets come back through lo.
  const int here = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
  CHECK(Netlink::Open()->SetLoopbackUp(here).ok());
  close(here);
  body();
  fflush(stdout);
  _exit(::testing::Test::HasFailure() ? 1 : 0);
}

// Runs `body` in a child in fresh namespaces; its failures are printed and counted.
template <class Body>
void InNetworkNamespace(Body body) {
  if (const std::string why = WhyNoNetworkNamespace(); !why.empty()) GTEST_SKIP() << why;
  fflush(stdout);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    CHECK(unshare(CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID) == 0);
    const pid_t first = fork();
    CHECK(first >= 0);
    if (first == 0) RunInNamespaces(std::move(body));
    int state = 0;
    CHECK(waitpid(first, &state, 0) == first);
    _exit(state == 0 ? 0 : 1);
  }
  int state = 0;
  ASSERT_EQ(waitpid(child, &state, 0), child);
  EXPECT_EQ(state, 0) << "the child in its namespace failed";
}

// One more network namespace beside the present one, e.g. a pod's.
class NetworkNamespace {
 public:
  NetworkNamespace() {
    const int here = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    CHECK(here >= 0 && unshare(CLONE_NEWNET) == 0);
    fd_ = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    CHECK(fd_ >= 0 && setns(here, CLONE_NEWNET) == 0);
    close(here);
  }
  ~NetworkNamespace() { close(fd_); }
  int fd() const { return fd_; }

  // Runs `body` inside; sockets that it makes stay inside.
  template <class Body>
  auto Inside(Body body) const {
    const int here = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    CHECK(here >= 0 && setns(fd_, CLONE_NEWNET) == 0);
    auto result = body();
    CHECK(setns(here, CLONE_NEWNET) == 0);
    close(here);
    return result;
  }

 private:
  int fd_ = -1;
};

// A listening TCP socket on every address.
inline int Listen(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in here = ToSocketAddress(Ipv4{}, port);
  CHECK(bind(fd, reinterpret_cast<const sockaddr*>(&here), sizeof here) == 0 &&
        listen(fd, 16) == 0);
  return fd;
}

// 0, or the errno of connecting. `from` gets the address that the listener sees when `listener` is
// given.
inline int Connect(Ipv4 address, uint16_t port, int listener = -1, Ipv4* from = nullptr) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval limit{.tv_sec = 3};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  const sockaddr_in there = ToSocketAddress(address, port);
  const int error =
      connect(fd, reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0 ? 0 : errno;
  if (error == 0 && listener >= 0) {
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    const int accepted =
        accept4(listener, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (accepted >= 0) close(accepted);
    if (from != nullptr) *from = Ipv4{ntohl(peer.sin_addr.s_addr)};
  }
  close(fd);
  return error;
}

// The errno that comes back for a datagram to port 9, 0 if none within `limit`. Unlike connect(),
// it does not wait for a retry to learn of an ICMP error.
inline int SendDatagram(Ipv4 address, const timeval& limit = {.tv_sec = 3}) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  const int on = 1;
  setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof on);
  const sockaddr_in there = ToSocketAddress(address, 9);
  int error = 0;
  char byte = 0;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&there), sizeof there) != 0 ||
      send(fd, &byte, 1, 0) != 1 || recv(fd, &byte, 1, 0) < 0) {
    error = errno == EAGAIN ? 0 : errno;
  }
  close(fd);
  return error;
}

}  // namespace muster::agent
