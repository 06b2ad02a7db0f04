#include "agent/shim/user_root.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>

#include "agent/runtime/files.h"
#include "agent/runtime/mount_table.h"

namespace muster::agent {
namespace {

// Made new for each container (rootfs.cc).
constexpr std::string_view kFresh[] = {"/proc", "/sys", "/dev"};
// May be file systems of their own.
constexpr std::string_view kSystem[] = {"/usr", "/etc", "/var", "/opt"};

bool Contains(const auto& list, std::string_view path) {
  return std::find(std::begin(list), std::end(list), path) != std::end(list);
}

// Anything that can be read in it.
bool HasEntries(const std::string& path) {
  DIR* dir = opendir(path.c_str());
  if (dir == nullptr) return false;
  int count = 0;
  while (count <= 2 && readdir(dir) != nullptr) ++count;
  closedir(dir);
  return count > 2;  // beside "." and ".."
}

class Planner {
 public:
  Planner(const std::set<std::string>& mount_points, const std::vector<std::string>& hidden,
          const std::string& node_root)
      : mount_points_(mount_points), hidden_(hidden), node_root_(node_root) {}

  void TakeApart(const std::string& dir) {
    for (const std::string& name : ListDir(node_root_ + (dir.empty() ? "/" : dir)))
      Place(dir + "/" + name, dir.empty());
  }

  UserRootPlan plan;

 private:
  void Place(const std::string& path, bool at_top) {
    struct stat info = {};
    if (lstat((node_root_ + path).c_str(), &info) != 0) return;
    if (S_ISLNK(info.st_mode)) return plan.links.push_back(path);
    if (S_ISREG(info.st_mode) && !at_top && !mount_points_.contains(path))
      return plan.files.push_back(path);
    if (!S_ISDIR(info.st_mode)) return;
    if (IsFresh(path) || !HasEntries(node_root_ + path)) return plan.folders.push_back(path);
    if (HasMountsBelow(path)) {
      plan.folders.push_back(path);
      return TakeApart(path);
    }
    if (plan.overlays.size() >= kMaxUserOverlays) return plan.folders.push_back(path);
    plan.overlays.push_back(path);
  }

  bool IsFresh(const std::string& path) const {
    return Contains(kFresh, path) || Contains(hidden_, path) ||
           (mount_points_.contains(path) && !Contains(kSystem, path));
  }

  bool HasMountsBelow(const std::string& path) const {
    const auto next = mount_points_.lower_bound(path + "/");
    return next != mount_points_.end() && next->starts_with(path + "/");
  }

  const std::set<std::string>& mount_points_;
  const std::vector<std::string>& hidden_;
  const std::string& node_root_;
};

}  // namespace

std::set<std::string> MountPoints(std::string_view mountinfo, const std::string& own) {
  std::set<std::string> out;
  for (MountEntry& entry : ParseMountInfo(mountinfo)) {
    std::string path = std::move(entry.point);
    if (path != "/" && !path.starts_with(own + "/")) out.insert(std::move(path));
  }
  return out;
}

UserRootPlan PlanUserRoot(const std::set<std::string>& mount_points,
                          const std::vector<std::string>& hidden, const std::string& node_root) {
  Planner planner(mount_points, hidden, node_root);
  planner.TakeApart("");
  return std::move(planner.plan);
}

Result<UserRootPlan> PlanUserRoot(const std::string& pod_dir,
                                  const std::vector<std::string>& hidden) {
  ASSIGN_OR_RETURN(const std::string mounts, ReadSmallFile("/proc/self/mountinfo"));
  // The layer cannot hide a folder from an overlay of that very folder: it must not become one.
  std::vector<std::string> resolved = hidden;
  for (const std::string& path : hidden) {
    char real[PATH_MAX];
    if (realpath(path.c_str(), real) != nullptr && path != real) resolved.emplace_back(real);
  }
  return PlanUserRoot(MountPoints(mounts, pod_dir), resolved, "");
}

}  // namespace muster::agent
