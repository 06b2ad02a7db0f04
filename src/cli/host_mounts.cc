#include "cli/host_mounts.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <unistd.h>

#include "base/strings.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;

bool IsInside(const std::string& path, const std::string& directory) {
  return path == directory || path.starts_with(directory == "/" ? directory : directory + "/");
}

// What a pod does not see of the machine: homes are masked, /tmp and /run are its own.
bool IsHidden(const std::string& path) {
  for (const char* hidden : {"/root", "/home", "/tmp", "/run", "/var/lib/muster"}) {
    if (IsInside(path, hidden)) return true;
  }
  return false;
}

std::string Parent(const std::string& path) { return fs::path(path).parent_path().string(); }

// ".../bin/python3" and ".../shims/python3" (pyenv) -> "..."; programs elsewhere -> their
// directory.
std::string PrefixOf(const std::string& program) {
  const std::string directory = Parent(program);
  const fs::path last = fs::path(directory).filename();
  return last == "bin" || last == "shims" ? Parent(directory) : directory;
}

// pyvenv.cfg: "home = /opt/python/bin", where the interpreter of a virtual environment really is.
std::string HomeOfVirtualEnv(const std::string& directory, const FileFacts& files) {
  const std::optional<std::string> text = files.read_file(directory + "/pyvenv.cfg");
  if (!text) return "";
  for (std::string_view line : Split(*text, '\n')) {
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos || Trim(line.substr(0, equals)) != "home") continue;
    return PrefixOf(std::string(Trim(line.substr(equals + 1))) + "/python");
  }
  return "";
}

std::string FindProgram(const std::string& name, const Environment& environment,
                        const std::string& directory, const FileFacts& files) {
  if (name.find('/') != std::string::npos)
    return name.starts_with('/') ? name : directory + "/" + name;
  const auto path = environment.find("PATH");
  if (path == environment.end()) return "";
  for (std::string_view part : SplitNonEmpty(path->second, ':')) {
    std::string candidate = std::string(part) + "/" + name;
    if (files.is_program(candidate)) return candidate;
  }
  return "";
}

class Planner {
 public:
  explicit Planner(const FileFacts& files) : files_(files) {}

  void AddReadOnly(const std::string& path) {
    if (path.empty() || path == "/" || !IsHidden(path) || !files_.is_directory(path)) return;
    for (const HostMount& mount : mounts_) {
      if (IsInside(path, mount.path)) return;
    }
    std::erase_if(mounts_, [&path](const HostMount& mount) {
      return mount.read_only && IsInside(mount.path, path);
    });
    mounts_.push_back({path, true});
  }

  void AddWritable(const std::string& path) {
    if (!path.empty() && path != "/") mounts_.push_back({path, false});
  }

  // Outer directories first, so that an inner one is not hidden by them.
  std::vector<HostMount> Take() {
    std::sort(mounts_.begin(), mounts_.end(),
              [](const auto& a, const auto& b) { return a.path < b.path; });
    return std::move(mounts_);
  }

 private:
  const FileFacts& files_;
  std::vector<HostMount> mounts_;
};

}  // namespace

std::vector<HostMount> PlanMounts(const std::string& directory, const Environment& environment,
                                  const std::vector<std::string>& program, const FileFacts& files) {
  Planner planner(files);
  planner.AddWritable(directory);
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const auto found = environment.find(name);
    if (found == environment.end() || found->second.empty()) continue;
    planner.AddReadOnly(found->second);
    planner.AddReadOnly(HomeOfVirtualEnv(found->second, files));
  }
  if (program.empty()) return planner.Take();
  const std::string found = FindProgram(program[0], environment, directory, files);
  if (!found.empty()) {
    planner.AddReadOnly(PrefixOf(found));
    if (const std::optional<std::string> real = files.real_path(found))
      planner.AddReadOnly(PrefixOf(*real));
  }
  return planner.Take();
}

Environment TakenEnvironment(const std::function<const char*(const char*)>& get) {
  Environment out;
  for (const char* name : {"PATH", "VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const char* value = get(name);
    if (value != nullptr && *value != '\0') out[name] = value;
  }
  return out;
}

FileFacts RealFiles() {
  FileFacts files;
  files.is_directory = [](const std::string& path) {
    std::error_code error;
    return fs::is_directory(path, error);
  };
  files.is_program = [](const std::string& path) {
    std::error_code error;
    return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
  };
  files.real_path = [](const std::string& path) -> std::optional<std::string> {
    std::error_code error;
    const fs::path real = fs::canonical(path, error);
    if (error) return std::nullopt;
    return real.string();
  };
  files.read_file = [](const std::string& path) -> std::optional<std::string> {
    std::ifstream file(path);
    if (!file) return std::nullopt;
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  };
  return files;
}

}  // namespace muster::cli
