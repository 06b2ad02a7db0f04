#include "agent/network/netfilter_socket.h"

#include <linux/netfilter/nfnetlink.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <string_view>

#include "agent/runtime/files.h"

namespace muster::agent {

namespace {

constexpr int kSendBytes = 1024 * 1024;
constexpr int kReceiveBytes = 4 * 1024 * 1024;  // nothing of an answer may be lost
constexpr size_t kReplyBytes = 64 * 1024;

}  // namespace

Result<UniqueFd> OpenNetfilter() {
  UniqueFd fd(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER));
  if (!fd.valid()) return SystemError("open", "a socket for netfilter", errno);
  const int on = 1;
  // As much as we may: root by force, a user up to the system's limit.
  for (const auto& [force, plain, bytes] : {std::array{SO_SNDBUFFORCE, SO_SNDBUF, kSendBytes},
                                            std::array{SO_RCVBUFFORCE, SO_RCVBUF, kReceiveBytes}}) {
    if (setsockopt(fd.get(), SOL_SOCKET, force, &bytes, sizeof bytes) != 0)
      setsockopt(fd.get(), SOL_SOCKET, plain, &bytes, sizeof bytes);
  }
  setsockopt(fd.get(), SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof on);
  const sockaddr_nl here{.nl_family = AF_NETLINK, .nl_pad = 0, .nl_pid = 0, .nl_groups = 0};
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&here), sizeof here) != 0)
    return SystemError("open", "a socket for netfilter", errno);
  return fd;
}

int DumpNetfilter(int fd, NetlinkRequest& request, uint16_t wanted,
                  Function<void(const char*, size_t)> visit) {
  const std::string_view bytes = request.Finish(0);
  if (send(fd, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return errno;
  alignas(nlmsghdr) std::array<char, kReplyBytes> buffer;
  bool interrupted = false;
  while (true) {
    const ssize_t size = recv(fd, buffer.data(), buffer.size(), 0);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return errno;
    auto left = static_cast<uint32_t>(size);
    for (auto* message = reinterpret_cast<nlmsghdr*>(buffer.data()); NLMSG_OK(message, left);
         message = NLMSG_NEXT(message, left)) {
      if ((message->nlmsg_flags & NLM_F_DUMP_INTR) != 0) interrupted = true;
      if (message->nlmsg_type == NLMSG_DONE) return interrupted ? EINTR : 0;
      if (message->nlmsg_type == NLMSG_ERROR)
        return -static_cast<nlmsgerr*>(NLMSG_DATA(message))->error;
      if (message->nlmsg_type != wanted) continue;
      const auto* begin = static_cast<const char*>(NLMSG_DATA(message)) + sizeof(nfgenmsg);
      visit(begin, NLMSG_PAYLOAD(message, sizeof(nfgenmsg)));
    }
  }
}

}  // namespace muster::agent
