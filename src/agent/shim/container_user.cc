#include "agent/shim/container_user.h"

#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <optional>

#include "agent/runtime/files.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

// The entries of /etc/passwd (7 fields) or /etc/group (4).
std::vector<std::vector<std::string_view>> Entries(std::string_view text, size_t fields) {
  std::vector<std::vector<std::string_view>> out;
  for (std::string_view line : SplitNonEmpty(text, '\n')) {
    std::vector<std::string_view> parts = Split(Trim(line), ':');
    if (parts.size() >= fields) out.push_back(std::move(parts));
  }
  return out;
}

std::optional<uint32_t> Number(std::string_view text) {
  const auto number = ParseInt(text);
  if (!number || *number < 0 || *number > std::numeric_limits<int32_t>::max()) return std::nullopt;
  return static_cast<uint32_t>(*number);
}

bool Lists(std::string_view members, std::string_view name) {
  const auto list = Split(members, ',');
  return std::find(list.begin(), list.end(), name) != list.end();
}

}  // namespace

Result<ContainerUser> FindContainerUser(std::string_view user, std::string_view passwd,
                                        std::string_view group) {
  const size_t colon = user.find(':');
  const std::string_view name = user.substr(0, colon);
  const std::string_view group_name =
      colon == std::string_view::npos ? std::string_view() : user.substr(colon + 1);
  ContainerUser out;
  const std::optional<uint32_t> number = name.empty() ? 0 : Number(name);
  std::string known_as;
  bool found = false;
  for (const auto& entry : Entries(passwd, 6)) {
    const std::optional<uint32_t> uid = Number(entry[2]);
    if (!uid || (entry[0] != name && uid != number)) continue;
    out.uid = *uid;
    out.gid = Number(entry[3]).value_or(0);
    out.home = entry[5].empty() ? "/" : std::string(entry[5]);
    known_as = std::string(entry[0]);
    found = true;
    break;
  }
  if (!found) {
    if (!number)
      return Error(Reason::kInvalid, "unable to find user {}: no matching entries in passwd file",
                   name);
    out.uid = *number;
  }
  if (!group_name.empty()) {
    const std::optional<uint32_t> gid = Number(group_name);
    bool known = false;
    for (const auto& entry : Entries(group, 3)) {
      if (entry[0] != group_name) continue;
      out.gid = Number(entry[2]).value_or(0);
      known = true;
    }
    if (!known && !gid)
      return Error(Reason::kInvalid, "unable to find group {}: no matching entries in group file",
                   group_name);
    if (!known) out.gid = *gid;
    return out;
  }
  if (known_as.empty()) return out;
  for (const auto& entry : Entries(group, 4)) {
    const std::optional<uint32_t> gid = Number(entry[2]);
    if (gid && Lists(entry[3], known_as)) out.groups.push_back(*gid);
  }
  return out;
}

Status BecomeContainerUser(const ContainerIdentity& identity,
                           std::vector<std::string>& environment) {
  const std::string user = identity.user.empty() ? "0" : identity.user;
  ASSIGN_OR_RETURN(ContainerUser found,
                   FindContainerUser(user, ReadSmallFile("/etc/passwd").value_or(""),
                                     ReadSmallFile("/etc/group").value_or("")));
  if (identity.only_groups) found.groups.clear();
  for (const int64_t group : identity.groups) found.groups.push_back(static_cast<gid_t>(group));
  const bool has_home =
      std::any_of(environment.begin(), environment.end(),
                  [](const std::string& entry) { return entry.starts_with("HOME="); });
  if (!has_home && !identity.user.empty()) environment.push_back("HOME=" + found.home);
  // Else it could not open its own /dev/stdout. Not /dev/null, which others have, too.
  for (int fd = 0; fd < 3 && found.uid != 0; ++fd) {
    struct stat info = {};
    if (fstat(fd, &info) == 0 && (S_ISFIFO(info.st_mode) || isatty(fd) == 1))
      (void)fchown(fd, found.uid, static_cast<gid_t>(-1));
  }
  // In a user namespace of one user groups cannot be set, and there is nobody else to be.
  const bool same = found.uid == geteuid() && found.gid == getegid();
  const bool grouped = setgroups(found.groups.size(), found.groups.data()) == 0;
  if ((!grouped && !(same && errno == EPERM)) || setgid(found.gid) != 0 || setuid(found.uid) != 0) {
    return SystemError("become", "user " + user, errno);
  }
  return Status::Ok();
}

}  // namespace muster::agent
