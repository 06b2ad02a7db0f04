// src/agent/runtime/files.h
//
// Small blocking file operations, beyond those of base/files.h, with messages that name the path.
// For the pool, the spawner and the shims.
//
// Thread: any.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/files.h"
#include "base/status.h"

namespace muster::agent {

// InternalError "open /x: Permission denied".
ErrorStatus SystemError(std::string_view what, std::string_view path, int error_number);

// Overwrites in place, for kernel files and files that nobody reads at the same time.
Status WriteFile(const std::string& path, std::string_view text, mode_t mode = 0644);
Status MakeDirs(const std::string& path, mode_t mode = 0755);
// Asks the file system to keep the folders in `path` far apart (ext4's top of a hierarchy). Else it
// keeps them close together, and there, without a journal, making a file steps over everyone that
// was deleted in the last minutes. Does nothing where a file system knows no such thing.
void SpreadFolders(const std::string& path);
// Everything below and the folder itself; symbolic links are removed, never followed. Ok if absent.
// Nothing that is mounted in the tree, or on it, is touched, also when it is of the same disk (a
// bind mount): that is an error which names it. A pod may have made the tree: its depth costs
// neither stack nor descriptors.
Status RemoveTree(const std::string& path);
// The last `limit` bytes at most.
Result<std::string> ReadTail(const std::string& path, size_t limit);
std::vector<std::string> ListDir(const std::string& path);  // names, sorted; empty if absent
// One component of a path, and not a hidden one: safe below any folder.
bool IsFileName(std::string_view name);
bool PathExists(const std::string& path);

}  // namespace muster::agent
