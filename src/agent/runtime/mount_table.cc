#include "agent/runtime/mount_table.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>

#include "agent/runtime/files.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

constexpr size_t kMountPointField = 4;

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

// As the kernel lists it; "" if it is absent.
Result<std::string> RealPath(const std::string& path) {
  char real[PATH_MAX];
  if (realpath(path.c_str(), real) != nullptr) return std::string(real);
  if (errno == ENOENT) return std::string();
  return SystemError("resolve", path, errno);
}

}  // namespace

std::vector<MountEntry> ParseMountInfo(std::string_view mountinfo) {
  std::vector<MountEntry> out;
  for (const std::string_view line : SplitNonEmpty(mountinfo, '\n')) {
    const std::vector<std::string_view> fields = SplitNonEmpty(line, ' ');
    if (fields.size() <= kMountPointField) continue;
    MountEntry entry{Unescape(fields[kMountPointField]), "", ""};
    // As many optional fields as there are, then a dash.
    const auto dash = std::find(fields.begin() + kMountPointField, fields.end(), "-");
    if (fields.end() - dash > 1) entry.type = dash[1];
    if (fields.end() - dash > 2) entry.source = Unescape(dash[2]);
    out.push_back(std::move(entry));
  }
  return out;
}

Result<std::vector<MountEntry>> MountsBelow(const std::string& dir) {
  ASSIGN_OR_RETURN(const std::string real, RealPath(dir));
  ASSIGN_OR_RETURN(const std::string text, ReadSmallFile("/proc/self/mountinfo"));
  std::vector<MountEntry> out = ParseMountInfo(text);
  std::erase_if(out, [&](const MountEntry& entry) {
    return real.empty() || (entry.point != real && !entry.point.starts_with(real + "/"));
  });
  return out;
}

Result<bool> IsMountPoint(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == path.npos) return Error(Reason::kInvalid, "{:?} is no absolute path", path);
  ASSIGN_OR_RETURN(const std::string parent, RealPath(path.substr(0, slash + 1)));
  if (parent.empty()) return false;
  const std::string point = (parent == "/" ? "" : parent) + path.substr(slash);
  ASSIGN_OR_RETURN(const std::string text, ReadSmallFile("/proc/self/mountinfo"));
  return std::ranges::any_of(ParseMountInfo(text),
                             [&](const MountEntry& entry) { return entry.point == point; });
}

}  // namespace muster::agent
