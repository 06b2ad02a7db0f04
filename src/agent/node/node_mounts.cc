#include "agent/node/node_mounts.h"

#include <algorithm>

#include "agent/runtime/files.h"
#include "base/log.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

constexpr size_t kMountPointField = 4;

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

// The kernel writes space, tab, line feed and backslash as \ooo.
std::string Unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view digits = text.substr(i).substr(0, 4);
    if (digits.size() == 4 && digits[0] == '\\' && digits[1] >= '0' && digits[1] <= '3') {
      out.push_back(
          static_cast<char>((digits[1] - '0') * 64 + (digits[2] - '0') * 8 + (digits[3] - '0')));
      i += 3;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

}  // namespace

std::vector<std::string> ProgramMounts(std::string_view mountinfo,
                                       const std::string& driver_library) {
  std::vector<std::string> out;
  std::string of_driver;  // the innermost mount that the library is in
  for (const std::string_view line : SplitNonEmpty(mountinfo, '\n')) {
    const std::vector<std::string_view> fields = SplitNonEmpty(line, ' ');
    if (fields.size() <= kMountPointField) continue;
    std::string point = Unescape(fields[kMountPointField]);
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
