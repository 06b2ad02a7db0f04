// src/agent/runtime/unmount.h
//
// Unmounts what is mounted in a folder that is to be removed. A server that is gone must neither
// hold the caller for ever nor keep the folder: each unmount is a child process with a time limit,
// and what does not come off in time is detached by force (what was on its way to the server is
// lost then, as with the kubelet). The empty folder that it was mounted on goes with it.
//
// Thread:     any; blocks, at most the two limits for each mount.
// Invariants: Ok means that nothing is mounted at or below the folder any more. Nothing is ever
//             opened in what is mounted.

#pragma once

#include <sys/mount.h>

#include <atomic>
#include <string>

#include "base/status.h"
#include "base/time.h"

namespace muster::agent {

inline constexpr Duration kUnmountTimeLimit = seconds(10);
inline constexpr Duration kForcedUnmountTimeLimit = seconds(5);

struct UnmountOptions {
  Duration time_limit = kUnmountTimeLimit;
  Duration forced_time_limit = kForcedUnmountTimeLimit;
  // umount2(2). Called in the child of a process with threads: it makes system calls alone.
  int (*unmount)(const char* path, int flags) = umount2;
  const std::atomic<bool>* cancelled = nullptr;  // set by another thread: end soon
};

// For killed programs that do not end: one that waits for what it wrote cannot be killed while the
// server is silent. Breaks off what has been asked of the servers of what is mounted at or below
// `dir`, also by others who use the same export; all stays mounted. What they ask next waits again,
// so it is called again for as long as they are there.
void BreakOffRequestsBelow(const std::string& dir, const UnmountOptions& options = {});
// Ok if `dir` is absent. ServiceUnavailable when cancelled.
Status UnmountBelow(const std::string& dir, const UnmountOptions& options = {});

}  // namespace muster::agent
