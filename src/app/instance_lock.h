// src/app/instance_lock.h
//
// InstanceLock: at most one muster per data directory. The lock is the kernel's (flock), so it ends
// with the process however it dies; the file also says which process holds it.
//
// Life cycle: taken at the start of `muster up`, held until the process ends.
// Thread:     any.

#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>

#include "base/status.h"
#include "base/time.h"

namespace muster::app {

inline constexpr Duration kDyingGrace = milliseconds(250);

class InstanceLock {
 public:
  // Conflict when another process holds it; the message names its pid.
  static Result<InstanceLock> Take(const std::string& data_dir);
  // The pid of the process that holds the lock; nullopt if none does.
  static std::optional<pid_t> Holder(const std::string& data_dir);
  // The same, but a holder that is just dying (it was killed a moment ago) does not count: waits up
  // to kDyingGrace for it to be gone.
  static std::optional<pid_t> LastingHolder(const std::string& data_dir);

  InstanceLock(InstanceLock&& other) noexcept;
  InstanceLock& operator=(InstanceLock&&) = delete;
  ~InstanceLock();

  // After a fork: the child's pid goes into the file (the lock itself is shared with the parent).
  Status RecordPid();

 private:
  InstanceLock(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  int fd_;
  std::string path_;
};

}  // namespace muster::app
