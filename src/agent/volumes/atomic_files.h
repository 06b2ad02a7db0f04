// src/agent/volumes/atomic_files.h
//
// The content of configMap, secret, downwardAPI and projected volumes, as the kubelet lays it out:
// the real files are in a dated folder, `..data` links to it, and each visible name links to
// ..data/NAME. An update makes a new folder and moves ..data in one rename, so that a reader sees
// all old files or all new ones.
//
// Thread:     one writer a folder.
// Invariants: an unchanged content writes nothing; paths are relative and stay inside.
// Source:     the kubelet's AtomicWriter.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "agent/volumes/volume_group.h"
#include "base/status.h"

namespace muster::agent {

inline constexpr size_t kMaxVolumeFiles = 4096;
inline constexpr size_t kMaxVolumeBytes = 4 * 1024 * 1024;

struct VolumeFile {
  std::string path;  // relative, "a/b"
  std::string data;
  mode_t mode = 0644;
  bool operator==(const VolumeFile&) const = default;
};

// Invalid if a path is absolute, empty, too long, or has a ".." part, or begins with "..".
Status ValidateVolumePath(const std::string& path);

// Makes `dir` hold exactly `files`. `version` names the dated folder; it must differ between
// different contents. `group` may read them (volume_group.h).
Status WriteVolumeFiles(const std::string& dir, const std::vector<VolumeFile>& files,
                        const std::string& version,
                        const std::optional<VolumeGroup>& group = std::nullopt);

}  // namespace muster::agent
