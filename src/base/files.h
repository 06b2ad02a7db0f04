// src/base/files.h
//
// Whole files, read and written. Errors name the path: NotFound if it is not there,
// RequestEntityTooLarge above the limit, else InternalError.
//
// Thread: any; blocks.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "base/status.h"

namespace muster {

inline constexpr size_t kMaxSmallFileBytes = 16 * 1024 * 1024;

Result<std::string> ReadSmallFile(const std::string& path, size_t limit = kMaxSmallFileBytes);
// From where `fd` stands to the end; `name` is what errors call it.
Result<std::string> ReadAll(int fd, const std::string& name, size_t limit = kMaxSmallFileBytes);

// Writes all of `text` to `fd`; `name` is what errors call it.
Status WriteAll(int fd, const std::string& name, std::string_view text);
// A reader sees the old file or the new one, whole and with this mode; after a failure the old one.
// Durable when it returns if `sync`.
Status WriteFileAtomic(const std::string& path, std::string_view text, mode_t mode = 0644,
                       bool sync = false);

}  // namespace muster
