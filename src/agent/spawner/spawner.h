// src/agent/spawner/spawner.h
//
// The spawner: a single-threaded child of the process, forked before any thread exists, because
// clone() and setns() out of a threaded process are unsafe and deleting a link blocks for
// milliseconds. It sets up the host network, makes pod sandboxes (namespaces, cgroup, veth) and
// starts their shims.
//
// Life cycle: SpawnerProcess::Fork() is the first statement of main(). The child never returns from
// it: it serves the
//             socket pair until the parent closes its end or dies, then exits. Shims live on.
// Thread:     the child has one; the handle is used by SpawnerClient on the loop thread.
// Protocol:   one JSON object a message over SOCK_SEQPACKET, at most kMaxSpawnerMessageBytes.
// Requests carry "id" and
//             "op"; the answer carries the same id and either "error" or the operation's fields.
//             Answers in order.

#pragma once

#include <sys/types.h>
#include <cstddef>

#include "base/status.h"

namespace muster::agent {

inline constexpr size_t kMaxSpawnerMessageBytes = 64 * 1024;

// The parent's end. Closing it (destroying the handle) ends the spawner.
class SpawnerHandle {
 public:
  SpawnerHandle() = default;
  SpawnerHandle(int fd, pid_t pid) : fd_(fd), pid_(pid) {}
  SpawnerHandle(SpawnerHandle&& other) noexcept;
  SpawnerHandle& operator=(SpawnerHandle&& other) noexcept;
  ~SpawnerHandle();

  bool valid() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  pid_t pid() const { return pid_; }

 private:
  int fd_ = -1;
  pid_t pid_ = -1;
};

class SpawnerProcess {
 public:
  // REQUIRES: the process has one thread. The child serves and exits; only the parent returns.
  static Result<SpawnerHandle> Fork();
};

}  // namespace muster::agent
