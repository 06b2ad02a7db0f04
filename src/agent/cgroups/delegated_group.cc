#include "agent/cgroups/delegated_group.h"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include "agent/runtime/files.h"
#include "base/log.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

bool MayDivide(const std::string& dir) {
  return access(dir.c_str(), W_OK) == 0 && access((dir + "/cgroup.procs").c_str(), W_OK) == 0;
}

// Switches the controllers on for groups below `dir`. The kernel refuses where processes are in it.
std::optional<DelegatedGroup> Divide(const std::string& dir) {
  const auto offered = ReadSmallFile(dir + "/cgroup.controllers");
  if (!offered) return std::nullopt;
  const auto names = SplitNonEmpty(Trim(*offered), ' ');
  const auto has = [&names](std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const DelegatedGroup group = {dir, has("memory"), has("cpu"), has("pids")};
  std::string wanted;
  for (std::string_view name : {"memory", "cpu", "pids"}) {
    if (has(name)) wanted += fmt::format("{}+{}", wanted.empty() ? "" : " ", name);
  }
  if (!group.memory && !group.cpu) return std::nullopt;
  if (!WriteFile(dir + "/cgroup.subtree_control", wanted).ok()) return std::nullopt;
  return group;
}

// "/user.slice/x" of the line "0::/user.slice/x".
std::string OwnGroup(std::string_view own_cgroups) {
  for (std::string_view line : SplitNonEmpty(own_cgroups, '\n')) {
    if (line.starts_with("0::")) return std::string(line.substr(3));
  }
  return "";
}

std::string Above(const std::string& path) { return path.substr(0, path.find_last_of('/')); }

}  // namespace

DelegatedGroup FindDelegatedGroup(const std::string& unified_root, std::string_view own_cgroups) {
  const std::string own = OwnGroup(own_cgroups);
  if (own.empty() || own == "/") return {};
  const std::string bottom = unified_root + own;
  if (!MayDivide(bottom)) return {};
  for (std::string dir = Above(bottom); dir.size() > unified_root.size() && MayDivide(dir);
       dir = Above(dir)) {
    if (const auto group = Divide(dir)) return *group;
  }
  const std::string leaf = fmt::format("{}/{}", bottom, kControlGroup);
  if (!MakeDirs(leaf).ok() || !WriteFile(leaf + "/cgroup.procs", "0").ok()) return {};
  return Divide(bottom).value_or(DelegatedGroup());
}

DelegatedGroup FindDelegatedGroup(const std::string& remembered) {
  const auto mounts = ReadSmallFile("/proc/self/mountinfo");
  const auto own = ReadSmallFile("/proc/self/cgroup");
  if (!mounts || !own) return {};
  const std::string root = UnifiedRoot(*mounts);
  if (root.empty()) return {.path = "", .unified = false};
  // Still above us: then processes can go there.
  if (const auto last = ReadSmallFile(remembered)) {
    if ((root + OwnGroup(*own) + "/").starts_with(*last + "/") && MayDivide(*last)) {
      if (const auto group = Divide(*last)) return *group;
    }
  }
  const DelegatedGroup group = FindDelegatedGroup(root, *own);
  if (group.path.empty()) return group;
  const Status written = WriteFileAtomic(remembered, group.path, 0600);
  if (!written.ok()) LOG_WARN("node: remember the cgroup: {}", written.message());
  return group;
}

}  // namespace muster::agent
