// src/agent/spawner/spawner.h
//
// The spawner: a single-threaded child of the process, forked before any thread exists, because
// clone() and setns() out of a threaded process are unsafe and deleting a link blocks for
// milliseconds. It sets up the host network, makes pod sandboxes (namespaces, cgroup, veth) and
// starts their shims.
//
// Life cycle: Fork() is the first statement of main(). When the child dies (kill -9, the OOM
//             killer), Execute() starts another one: this program anew, since a threaded process
//             may fork only to execute. The child serves the socket pair until the parent closes
//             its end or dies, then exits. Shims live on.
// Thread:     the child has one; the handle is used by SpawnerClient on the loop thread.
// Protocol:   one JSON object a message over SOCK_SEQPACKET, at most kMaxSpawnerMessageBytes.
//             Requests carry "id" and "op"; the answer carries the same id and either "error" or
//             the operation's fields. Answers in order. Every operation may be repeated.
// Invariants: of one data folder at most one spawner works at a time (the ProcessLock `lock_file`):
//             a new one waits until that of a dead parent has finished what it was doing.

#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/time.h"

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

// Where a spawner works.
struct SpawnerOptions {
  std::string lock_file;  // "" takes no lock (tests)
  int network = -1;       // of the node, if that is not the caller's: a network namespace
  std::string cgroup;     // Cgroups::At()
  bool plain = false;     // pods are plain processes: there are no namespaces for this user
};

// The first argument of the program when it is to be a spawner. Not for users.
inline constexpr std::string_view kSpawnerCommand = "internal-spawner";
// What a predecessor may take to finish before it is killed.
inline constexpr Duration kPredecessorPatience = seconds(5);

class SpawnerProcess {
 public:
  // REQUIRES: the process has one thread. The child serves and exits; only the parent returns.
  static Result<SpawnerHandle> Fork(const SpawnerOptions& options);
  // Any thread. REQUIRES: this program calls Serve() for kSpawnerCommand.
  static Result<SpawnerHandle> Execute(const SpawnerOptions& options);
  // main() of an executed spawner.
  [[noreturn]] static void Serve(int argc, char** argv);
};

}  // namespace muster::agent
