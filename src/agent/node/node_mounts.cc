#include "agent/node/node_mounts.h"

#include <algorithm>

#include "agent/runtime/mount_table.h"
#include "base/files.h"
#include "base/log.h"

namespace muster::agent {
namespace {

bool IsAtOrBelow(std::string_view path, std::string_view dir) {
  return path == dir || (path.starts_with(dir) && path.substr(dir.size()).starts_with('/'));
}

// Fresh in every container, or its own.
bool IsHidden(std::string_view path) {
  for (const char* dir : {"/proc", "/sys", "/dev", "/run", "/tmp", "/home", "/root", "/var/tmp"}) {
    if (IsAtOrBelow(path, dir)) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> ProgramMounts(std::string_view mountinfo,
                                       const std::string& driver_library) {
  std::vector<std::string> out;
  std::string of_driver;  // the innermost mount that the library is in
  for (MountEntry& entry : ParseMountInfo(mountinfo)) {
    std::string point = std::move(entry.point);
    if (point == "/" || IsHidden(point)) continue;
    if (IsAtOrBelow(driver_library, point) && point.size() > of_driver.size()) of_driver = point;
    if (IsAtOrBelow(point, "/usr")) out.push_back(std::move(point));
  }
  if (!of_driver.empty()) out.push_back(of_driver);
  std::sort(out.begin(), out.end());
  // What is below another comes with it. A sorted list may have other names in between (/usr/a,
  // /usr/a-b, /usr/a/c), so every one is compared with all that stay.
  std::vector<std::string> tops;
  for (std::string& point : out) {
    const bool below = std::any_of(tops.begin(), tops.end(),
                                   [&](const std::string& top) { return IsAtOrBelow(point, top); });
    if (!below) tops.push_back(std::move(point));
  }
  if (tops.size() > kMaxNodeMounts) {
    LOG_WARN("agent: {} mounts hold programs, only {} are shown in pods", tops.size(),
             kMaxNodeMounts);
    tops.resize(kMaxNodeMounts);
  }
  return tops;
}

std::vector<std::string> NodeProgramMounts(const std::string& driver_library) {
  const auto text = ReadSmallFile("/proc/self/mountinfo");
  return text ? ProgramMounts(*text, driver_library) : std::vector<std::string>();
}

}  // namespace muster::agent
