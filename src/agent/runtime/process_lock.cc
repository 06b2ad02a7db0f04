#include "agent/runtime/process_lock.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "agent/runtime/files.h"

namespace muster::agent {
namespace {

constexpr Duration kKillPatience = seconds(1);

struct flock WholeFile() {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

// True when the process has ended (all of its namespace with it, if it was the first one there).
bool AwaitEnd(int pid_fd, Duration patience) {
  pollfd ended = {pid_fd, POLLIN, 0};
  const auto ms = std::chrono::duration_cast<milliseconds>(patience).count();
  return poll(&ended, 1, static_cast<int>(ms)) > 0;
}

}  // namespace

Status TakeProcessLock(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid()) return SystemError("open", path, errno);
  struct flock lock = WholeFile();
  if (fcntl(fd.get(), F_SETLK, &lock) != 0) {
    if (errno == EAGAIN || errno == EACCES)
      return Error(Reason::kConflict, "{} is held by another process", path);
    return SystemError("lock", path, errno);
  }
  fd.Release();  // the lock is the process's, until it ends
  return Status::Ok();
}

std::optional<pid_t> ProcessLockHolder(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct flock lock = WholeFile();
  if (!fd.valid() || fcntl(fd.get(), F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK)
    return std::nullopt;
  return lock.l_pid;
}

Result<UniqueFd> OpenProcessLockHolder(const std::string& path) {
  while (const auto pid = ProcessLockHolder(path)) {
    if (*pid <= 0)
      return Error(Reason::kConflict, "{} is held outside of this PID namespace", path);
    UniqueFd pid_fd(static_cast<int>(syscall(SYS_pidfd_open, *pid, 0)));
    if (!pid_fd.valid() && errno != ESRCH) return SystemError("pidfd_open", path, errno);
    // Still the holder: then the number was not used again in between.
    if (pid_fd.valid() && ProcessLockHolder(path) == pid) return pid_fd;
  }
  return UniqueFd();
}

Status EndProcess(const std::string& path, Duration patience) {
  ASSIGN_OR_RETURN(const UniqueFd holder, OpenProcessLockHolder(path));
  if (!holder.valid()) return Status::Ok();
  syscall(SYS_pidfd_send_signal, holder.get(), SIGKILL, nullptr, 0);
  if (AwaitEnd(holder.get(), patience)) return Status::Ok();
  return Error(Reason::kConflict, "the process that holds {} does not end", path);
}

Status TakeOverProcessLock(const std::string& path, Duration patience) {
  ASSIGN_OR_RETURN(const UniqueFd holder, OpenProcessLockHolder(path));
  if (holder.valid() && !AwaitEnd(holder.get(), patience))
    RETURN_IF_ERROR(EndProcess(path, kKillPatience));
  return TakeProcessLock(path);
}

}  // namespace muster::agent
