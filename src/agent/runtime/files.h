// src/agent/runtime/files.h
//
// Small blocking file operations with messages that name the path. For the pool, the spawner and
// the shims.
//
// Thread: any.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/status.h"

namespace muster::agent {

inline constexpr size_t kMaxSmallFileBytes = 16 * 1024 * 1024;

// InternalError "open /x: Permission denied".
ErrorStatus SystemError(std::string_view what, std::string_view path, int error_number);

Result<std::string> ReadSmallFile(const std::string& path, size_t limit = kMaxSmallFileBytes);
// Overwrites in place, for kernel files and files that nobody reads at the same time.
Status WriteFile(const std::string& path, std::string_view text, mode_t mode = 0644);
// A reader sees the old text or the new one; durable when it returns if `sync`.
Status WriteFileAtomic(const std::string& path, std::string_view text, mode_t mode = 0644,
                       bool sync = false);
Status MakeDirs(const std::string& path, mode_t mode = 0755);
// Everything below and the folder itself; symbolic links are removed, never followed. Ok if absent.
// Does not cross into other file systems.
Status RemoveTree(const std::string& path);
std::vector<std::string> ListDir(const std::string& path);  // names, sorted; empty if absent
bool PathExists(const std::string& path);

}  // namespace muster::agent
