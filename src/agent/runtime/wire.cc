#include "agent/runtime/wire.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "agent/runtime/files.h"
#include "json/parse.h"
#include "json/write.h"

namespace muster::agent {
namespace {

constexpr size_t kHeaderBytes = 8;

void AppendU32(std::string& out, uint32_t value) {
  for (int i = 0; i < 4; ++i) out.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
}

uint32_t ReadU32(const char* bytes) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i)
    value |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return value;
}

}  // namespace

WireConnection::WireConnection(UniqueFd socket) : socket_(std::move(socket)) {
  const int flags = fcntl(socket_.get(), F_GETFL);
  if (flags < 0 || fcntl(socket_.get(), F_SETFL, flags | O_NONBLOCK) < 0) broken_ = true;
}

void WireConnection::Send(const json::Value& message, std::vector<UniqueFd> fds) {
  if (broken_) return;
  const std::string text = json::Write(message);
  if (text.size() > kMaxWireFrameBytes || fds.size() > kMaxWireFds ||
      out_bytes_ + text.size() > kMaxWireBacklogBytes) {
    broken_ = true;
    return;
  }
  Pending pending;
  pending.bytes.reserve(kHeaderBytes + text.size());
  AppendU32(pending.bytes, static_cast<uint32_t>(text.size()));
  AppendU32(pending.bytes, static_cast<uint32_t>(fds.size()));
  pending.bytes += text;
  pending.fds = std::move(fds);
  out_bytes_ += pending.bytes.size();
  out_.push_back(std::move(pending));
  Flush();
}

bool WireConnection::WriteSome(Pending& pending) {
  iovec part = {pending.bytes.data() + pending.written, pending.bytes.size() - pending.written};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxWireFds)] = {};
  if (!pending.fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * pending.fds.size());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * pending.fds.size());
    for (size_t i = 0; i < pending.fds.size(); ++i) {
      const int fd = pending.fds[i].get();
      memcpy(CMSG_DATA(header) + i * sizeof(int), &fd, sizeof fd);
    }
  }
  const ssize_t n = sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n < 0) {
    if (errno != EAGAIN && errno != EINTR) broken_ = true;
    return errno == EINTR && !broken_;
  }
  pending.fds.clear();  // they travel with the first byte
  pending.written += static_cast<size_t>(n);
  return true;
}

bool WireConnection::Flush() {
  while (!out_.empty() && !broken_) {
    Pending& front = out_.front();
    if (!WriteSome(front)) return false;
    if (front.written < front.bytes.size()) continue;
    out_bytes_ -= front.bytes.size();
    out_.pop_front();
  }
  return out_.empty();
}

void WireConnection::ReadAvailable() {
  while (!broken_) {
    char buffer[64 * 1024];
    iovec part = {buffer, sizeof buffer};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxWireFds)] = {};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t n = recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    for (cmsghdr* header = n < 0 ? nullptr : CMSG_FIRSTHDR(&message); header != nullptr;
         header = CMSG_NXTHDR(&message, header)) {
      if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
      const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (size_t i = 0; i < count; ++i) {
        int fd = -1;
        memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
        in_fds_.emplace_back(fd);
      }
    }
    if (n <= 0) {
      broken_ = true;
      return;
    }
    in_.append(buffer, static_cast<size_t>(n));
    if (in_.size() - in_start_ > kMaxWireBacklogBytes || in_fds_.size() > 16 * kMaxWireFds)
      broken_ = true;
  }
}

std::optional<WireFrame> WireConnection::Next() {
  const size_t available = in_.size() - in_start_;
  if (available < kHeaderBytes) return std::nullopt;
  const uint32_t length = ReadU32(in_.data() + in_start_);
  const uint32_t fd_count = ReadU32(in_.data() + in_start_ + 4);
  if (length > kMaxWireFrameBytes || fd_count > kMaxWireFds) {
    broken_ = true;
    return std::nullopt;
  }
  if (available < kHeaderBytes + length) return std::nullopt;
  if (in_fds_.size() < fd_count) {
    broken_ = true;
    return std::nullopt;
  }
  auto parsed = json::Parse(std::string_view(in_).substr(in_start_ + kHeaderBytes, length));
  in_start_ += kHeaderBytes + length;
  if (in_start_ == in_.size() || in_start_ > 1024 * 1024) {
    in_.erase(0, in_start_);
    in_start_ = 0;
  }
  if (!parsed) {
    broken_ = true;
    return std::nullopt;
  }
  WireFrame frame;
  frame.message = std::move(*parsed);
  for (uint32_t i = 0; i < fd_count; ++i) {
    frame.fds.push_back(std::move(in_fds_.front()));
    in_fds_.pop_front();
  }
  return frame;
}

namespace {

Result<UniqueFd> OpenSocketAt(const std::string& dir, const std::string& name, UniqueFd& dir_fd,
                              sockaddr_un& address) {
  dir_fd.Reset(open(dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!dir_fd.valid()) return SystemError("open", dir, errno);
  const std::string path = fmt::format("/proc/self/fd/{}/{}", dir_fd.get(), name);
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return Error(Reason::kInvalid, "socket name {} is too long", name);
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  UniqueFd socket_fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_fd.valid()) return SystemError("socket", name, errno);
  return socket_fd;
}

}  // namespace

Result<UniqueFd> ListenUnix(const std::string& dir, const std::string& name) {
  UniqueFd dir_fd;
  sockaddr_un address = {};
  ASSIGN_OR_RETURN(UniqueFd fd, OpenSocketAt(dir, name, dir_fd, address));
  unlinkat(dir_fd.get(), name.c_str(), 0);
  if (fchmod(fd.get(), 0600) != 0) return SystemError("chmod", name, errno);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return SystemError("bind", dir + "/" + name, errno);
  }
  if (fchmodat(dir_fd.get(), name.c_str(), 0600, 0) != 0)
    return SystemError("chmod", dir + "/" + name, errno);
  if (listen(fd.get(), 8) != 0) return SystemError("listen", dir + "/" + name, errno);
  return fd;
}

Result<UniqueFd> ConnectUnix(const std::string& dir, const std::string& name) {
  UniqueFd dir_fd;
  sockaddr_un address = {};
  ASSIGN_OR_RETURN(UniqueFd fd, OpenSocketAt(dir, name, dir_fd, address));
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return SystemError("connect", dir + "/" + name, errno);
  }
  return fd;
}

}  // namespace muster::agent
