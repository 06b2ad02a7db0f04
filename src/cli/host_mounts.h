// src/cli/host_mounts.h
//
// Which directories of this machine a program needs inside a pod: the current directory, its
// virtual environment, and what that points to. A pod sees this machine's / but neither /root nor
// /home.
//
// Thread: any. Looks at files only through FileFacts, so tests need none.

#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::cli {

struct HostMount {
  std::string path;  // the same outside and inside
  bool read_only = true;
  bool operator==(const HostMount&) const = default;
};

struct FileFacts {
  std::function<bool(const std::string& path)> is_directory;
  std::function<bool(const std::string& path)> is_program;
  // With all symbolic links followed; nullopt if there is nothing.
  std::function<std::optional<std::string>(const std::string& path)> real_path;
  std::function<std::optional<std::string>(const std::string& path)> read_file;
};
FileFacts RealFiles();

using Environment = std::map<std::string, std::string>;

// `directory` is writable, the rest read-only. No mount lies inside another one that can do the
// same; a directory that the pod sees anyway is not mounted.
std::vector<HostMount> PlanMounts(const std::string& directory, const Environment& environment,
                                  const std::vector<std::string>& program, const FileFacts& files);

// What of the caller's environment goes along: PATH, VIRTUAL_ENV, CONDA_PREFIX.
Environment TakenEnvironment(const std::function<const char*(const char*)>& get);

}  // namespace muster::cli
