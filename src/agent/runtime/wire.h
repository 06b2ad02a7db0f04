// src/agent/runtime/wire.h
//
// JSON messages with file descriptors over a Unix stream socket: how the agent and a shim talk. A
// frame is 4 bytes of length, 4 bytes of descriptor count (both little endian), then the JSON text.
//
// Life cycle: one WireConnection per connected socket, which it owns.
// Thread:     one owner.
// Invariants: a frame is at most kMaxWireFrameBytes and carries at most kMaxWireFds; a peer that
// breaks this, or lets
//             more than kMaxWireBacklogBytes pile up, is cut off.

#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "agent/runtime/unique_fd.h"
#include "base/status.h"
#include "json/value.h"

namespace muster::agent {

inline constexpr size_t kMaxWireFrameBytes = 8 * 1024 * 1024;
inline constexpr size_t kMaxWireBacklogBytes = 32 * 1024 * 1024;
inline constexpr size_t kMaxWireFds = 8;

struct WireFrame {
  json::Value message;
  std::vector<UniqueFd> fds;
};

class WireConnection {
 public:
  // Makes the socket non-blocking.
  explicit WireConnection(UniqueFd socket);

  int fd() const { return socket_.get(); }
  bool broken() const { return broken_; }

  // Queues a frame and writes what the socket takes now.
  void Send(const json::Value& message, std::vector<UniqueFd> fds = {});
  // Writes what is queued; true when nothing is left.
  bool Flush();
  bool WantsWrite() const { return !out_.empty() && !broken_; }

  // Reads until the socket would block; afterwards Next() gives the whole frames. broken() at end
  // of file.
  void ReadAvailable();
  std::optional<WireFrame> Next();

 private:
  struct Pending {
    std::string bytes;
    size_t written = 0;
    std::vector<UniqueFd> fds;
  };
  bool WriteSome(Pending& pending);

  UniqueFd socket_;
  bool broken_ = false;
  std::deque<Pending> out_;
  size_t out_bytes_ = 0;
  std::string in_;
  size_t in_start_ = 0;
  std::deque<UniqueFd> in_fds_;
};

// A pair, a listener at DIR/NAME and a connection to it. The folder is given separately because a
// Unix socket path may have 107 bytes only; they go through /proc/self/fd.
Result<UniqueFd> ListenUnix(const std::string& dir, const std::string& name);
Result<UniqueFd> ConnectUnix(const std::string& dir, const std::string& name);

}  // namespace muster::agent
