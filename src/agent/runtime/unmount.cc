#include "agent/runtime/unmount.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <vector>

#include "agent/runtime/files.h"
#include "agent/runtime/mount_table.h"
#include "agent/runtime/unique_fd.h"
#include "base/log.h"

namespace muster::agent {
namespace {

constexpr int kLookMs = 100;
constexpr Duration kKillPatience = seconds(1);

// Children that did not end when they were killed: they wait in the kernel for a server. They are
// reaped later, whenever the next unmount begins.
class Leftovers {
 public:
  void Add(pid_t pid) {
    const std::lock_guard lock(mutex_);
    pids_.push_back(pid);
  }
  void Reap() {
    const std::lock_guard lock(mutex_);
    std::erase_if(pids_, [](pid_t pid) { return waitpid(pid, nullptr, WNOHANG) != 0; });
  }

 private:
  std::mutex mutex_;
  std::vector<pid_t> pids_;
};

Leftovers& TheLeftovers() {
  static Leftovers leftovers;
  return leftovers;
}

// One unmount.
struct Task {
  const char* path;
  int flags;
  bool in_a_copy;  // of the mount namespace, so that nothing but the flags has an effect
};

// Between fork() and its end of a process with threads: system calls alone, no memory. It keeps no
// descriptor: one that hangs must not hold the locks of an agent that was killed.
[[noreturn]] void Child(const UnmountOptions& options, const Task& task, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(ESRCH);
  setpgid(0, 0);  // a terminal's ^C is the parent's
  syscall(SYS_close_range, 0U, ~0U, 0U);
  if (task.in_a_copy) {
    if (unshare(CLONE_NEWNS) != 0) _exit(errno);
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) _exit(errno);
  }
  if (options.unmount(task.path, task.flags) != 0) _exit(errno);
  if (task.in_a_copy) _exit(0);
  // With its place the copies go that sandboxes have, which are made with all mounts of the node;
  // the last one gives the server back what it waits for, and here nobody waits for that.
  (void)rmdir(task.path);
  _exit(0);
}

bool IsCancelled(const UnmountOptions& options) {
  return options.cancelled != nullptr && *options.cancelled;
}

// True once it has ended.
bool AwaitEnd(int pid_fd, Duration limit, const UnmountOptions& options) {
  const Duration start = RealClock().Monotonic();
  while (true) {
    pollfd ended = {pid_fd, POLLIN, 0};
    if (poll(&ended, 1, kLookMs) > 0) return true;
    if (RealClock().Monotonic() - start > limit || IsCancelled(options)) return false;
  }
}

// What umount2() says: 0, or its errno; ETIMEDOUT when it was still at it.
int RunInChild(const Task& task, Duration limit, const UnmountOptions& options) {
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return errno;
  if (pid == 0) Child(options, task, parent);
  const UniqueFd pid_fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  const bool ended = pid_fd.valid() && AwaitEnd(pid_fd.get(), limit, options);
  if (!ended) {
    (void)kill(pid, SIGKILL);
    if (!pid_fd.valid() || !AwaitEnd(pid_fd.get(), kKillPatience, {})) {
      TheLeftovers().Add(pid);
      return ETIMEDOUT;
    }
  }
  int state = 0;
  while (waitpid(pid, &state, 0) < 0 && errno == EINTR) {
  }
  return ended && WIFEXITED(state) ? WEXITSTATUS(state) : ETIMEDOUT;
}

// Whether it worked is read from the mount table: a child may have detached the mount and then
// hang in giving it back.
int Unmount(const std::string& point, const UnmountOptions& options) {
  const char* path = point.c_str();
  const int failure = RunInChild({path, UMOUNT_NOFOLLOW, false}, options.time_limit, options);
  if (failure == 0 || IsCancelled(options)) return failure;
  LOG_WARN("agent: unmount {}: {}; detach it", point, strerror(failure));
  // In use by a program of the machine: it keeps what it has open, and nobody else gets at it. By
  // force only where the server does not answer: it breaks off what others ask that server, too.
  const int flags = UMOUNT_NOFOLLOW | MNT_DETACH | (failure == ETIMEDOUT ? MNT_FORCE : 0);
  return RunInChild({path, flags, false}, options.forced_time_limit, options);
}

}  // namespace

void BreakOffRequestsBelow(const std::string& dir, const UnmountOptions& options) {
  TheLeftovers().Reap();
  const Result<std::vector<MountEntry>> mounts = MountsBelow(dir);
  if (!mounts) return;
  for (const MountEntry& mounted : *mounts) {
    if (IsCancelled(options)) return;
    LOG_WARN("agent: break off what programs wait for from {} ({})", mounted.source, mounted.point);
    const Task task = {mounted.point.c_str(), UMOUNT_NOFOLLOW | MNT_FORCE, true};
    const int failure = RunInChild(task, options.forced_time_limit, options);
    if (failure != 0) LOG_WARN("agent: break off {}: {}", mounted.point, strerror(failure));
  }
}

Status UnmountBelow(const std::string& dir, const UnmountOptions& options) {
  TheLeftovers().Reap();
  ASSIGN_OR_RETURN(std::vector<MountEntry> mounts, MountsBelow(dir));
  while (!mounts.empty()) {
    // The last one first: what lies on another mount, or in it.
    const std::string point = mounts.back().point;
    const int failure = Unmount(point, options);
    const size_t before = mounts.size();
    ASSIGN_OR_RETURN(mounts, MountsBelow(dir));
    if (mounts.size() < before) continue;
    if (IsCancelled(options))
      return Error(Reason::kServiceUnavailable, "the node agent stops; {} is still mounted", point);
    return SystemError("unmount", point, failure == 0 ? EBUSY : failure);
  }
  return Status::Ok();
}

}  // namespace muster::agent
