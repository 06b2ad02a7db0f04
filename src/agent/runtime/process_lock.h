// src/agent/runtime/process_lock.h
//
// ProcessLock: at most one living process for a lock file, and a way to end the one that lives. It
// is a POSIX record lock: it belongs to the process alone (children do not inherit it), the kernel
// drops it however the process ends, and the kernel says who holds it. So no pid file can be stale.
//
// Life cycle: Take() once per process and file; the lock ends with the process. The process must
// not open the file again: closing any descriptor of it would drop the lock.
// Thread:     any; EndProcess() and TakeOver() block up to what they are told.

#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "agent/runtime/unique_fd.h"
#include "base/status.h"
#include "base/time.h"

namespace muster::agent {

// Conflict if another process holds it.
Status TakeProcessLock(const std::string& path);
// In our PID namespace; nullopt: nobody (also when there is no such file).
std::optional<pid_t> ProcessLockHolder(const std::string& path);
// A descriptor (pidfd) of the holder: it cannot become another process with the same number. Not
// valid if there is none.
Result<UniqueFd> OpenProcessLockHolder(const std::string& path);
// SIGKILL to the holder, if there is one; Conflict if it is still there after `patience`.
Status EndProcess(const std::string& path, Duration patience);
// Waits up to `patience` for the holder to end, then ends it, and takes the lock.
Status TakeOverProcessLock(const std::string& path, Duration patience);

}  // namespace muster::agent
