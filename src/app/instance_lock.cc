#include "app/instance_lock.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/strings.h"

namespace muster::app {
namespace {

std::string LockFile(const std::string& data_dir) { return data_dir + "/run/muster.pid"; }

std::optional<pid_t> ReadPid(int fd) {
  char text[32] = {};
  const ssize_t count = pread(fd, text, sizeof(text) - 1, 0);
  if (count <= 0) return std::nullopt;
  const std::optional<int64_t> pid =
      ParseInt(Trim(std::string_view(text, static_cast<size_t>(count))));
  if (!pid || *pid <= 0) return std::nullopt;
  return static_cast<pid_t>(*pid);
}

}  // namespace

Result<InstanceLock> InstanceLock::Take(const std::string& data_dir) {
  const std::string path = LockFile(data_dir);
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0)
    return Error(Reason::kInternalError, "cannot open {}: {}", path, std::strerror(errno));
  InstanceLock lock(fd, path);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const std::optional<pid_t> pid = ReadPid(fd);
    return Error(Reason::kConflict,
                 "muster is already running on {} (pid {}); `muster down --data-dir {}` stops it",
                 data_dir, pid ? std::to_string(*pid) : "unknown", data_dir);
  }
  RETURN_IF_ERROR(lock.RecordPid());
  return lock;
}

std::optional<pid_t> InstanceLock::Holder(const std::string& data_dir) {
  const std::string path = LockFile(data_dir);
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  const InstanceLock file(fd, path);
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return std::nullopt;
  return ReadPid(fd);
}

std::optional<pid_t> InstanceLock::LastingHolder(const std::string& data_dir) {
  const std::optional<pid_t> pid = Holder(data_dir);
  if (!pid) return std::nullopt;
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, *pid, 0));
  if (fd >= 0) {
    pollfd dying{fd, POLLIN, 0};
    poll(&dying, 1,
         static_cast<int>(std::chrono::duration_cast<milliseconds>(kDyingGrace).count()));
    close(fd);
  }
  return Holder(data_dir);
}

InstanceLock::InstanceLock(InstanceLock&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}

InstanceLock::~InstanceLock() {
  if (fd_ >= 0) close(fd_);
}

Status InstanceLock::RecordPid() {
  const std::string text = std::to_string(getpid()) + "\n";
  // Written over the old one and cut after: a file that has its room needs none on a full disk.
  const ssize_t written = pwrite(fd_, text.data(), text.size(), 0);
  if (written == static_cast<ssize_t>(text.size()) && ftruncate(fd_, written) == 0)
    return Status::Ok();
  return Error(Reason::kInternalError, "cannot write {}: {}", path_,
               std::strerror(written >= 0 && written < std::ssize(text) ? ENOSPC : errno));
}

}  // namespace muster::app
