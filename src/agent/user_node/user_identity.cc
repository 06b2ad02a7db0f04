#include "agent/user_node/user_identity.h"

#include <pwd.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "agent/runtime/files.h"
#include "base/strings.h"

namespace muster::agent {

std::optional<IdRange> SubordinateRange(std::string_view text, std::string_view user_name,
                                        uint32_t user_id) {
  for (std::string_view line : SplitNonEmpty(text, '\n')) {
    const auto parts = Split(line, ':');
    if (parts.size() != 3) continue;
    if (parts[0] != user_name && parts[0] != std::to_string(user_id)) continue;
    const auto first = ParseInt(parts[1]);
    const auto count = ParseInt(Trim(parts[2]));
    if (!first || !count || *first <= 0 || *count <= 0) continue;
    if (*first + *count > std::numeric_limits<uint32_t>::max()) continue;
    return IdRange{static_cast<uint32_t>(*first),
                   static_cast<uint32_t>(std::min<int64_t>(*count, int64_t{kMaxSubordinateIds}))};
  }
  return std::nullopt;
}

namespace {

constexpr const char* kMapUsers = "/usr/bin/newuidmap";
constexpr const char* kMapGroups = "/usr/bin/newgidmap";

Status RunMapProgram(const char* program, pid_t pid, uint32_t own_id, IdRange range) {
  std::vector<std::string> arguments = MapArguments(pid, own_id, range);
  std::vector<char*> argv = {const_cast<char*>(program)};
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  const int error = posix_spawn(&child, program, nullptr, nullptr, argv.data(), environ);
  if (error != 0) return SystemError("start", program, error);
  int state = 0;
  while (waitpid(child, &state, 0) < 0) {
    if (errno != EINTR) return SystemError("wait for", program, errno);
  }
  if (WIFEXITED(state) && WEXITSTATUS(state) == 0) return Status::Ok();
  return Error(Reason::kForbidden, "{} refused", program);
}

}  // namespace

std::optional<SubordinateIds> OwnSubordinateIds() {
  if (access(kMapUsers, X_OK) != 0 || access(kMapGroups, X_OK) != 0) return std::nullopt;
  const uid_t user = geteuid();
  const passwd* entry = getpwuid(user);
  const std::string name = entry == nullptr ? std::to_string(user) : entry->pw_name;
  const auto find = [&](const char* file) {
    return SubordinateRange(ReadSmallFile(file).value_or(""), name, user);
  };
  const auto users = find("/etc/subuid");
  const auto groups = find("/etc/subgid");
  if (!users || !groups) return std::nullopt;
  return SubordinateIds{*users, *groups};
}

Status MapOwnId(uid_t user, gid_t group) {
  // Without this a member of a group could take leave of it, and of what it forbids him.
  RETURN_IF_ERROR(WriteFile("/proc/self/setgroups", "deny"));
  RETURN_IF_ERROR(WriteFile("/proc/self/uid_map", fmt::format("0 {} 1", user)));
  return WriteFile("/proc/self/gid_map", fmt::format("0 {} 1", group));
}

Status MapSubordinateIds(pid_t pid, const SubordinateIds& ids) {
  RETURN_IF_ERROR(RunMapProgram(kMapUsers, pid, geteuid(), ids.users));
  return RunMapProgram(kMapGroups, pid, getegid(), ids.groups);
}

std::vector<std::string> MapArguments(pid_t pid, uint32_t own_id, IdRange range) {
  return {std::to_string(pid),
          "0",
          std::to_string(own_id),
          "1",
          "1",
          std::to_string(range.first),
          std::to_string(range.count)};
}

uint64_t MappedIds(std::string_view map) {
  uint64_t out = 0;
  for (const std::string_view line : SplitNonEmpty(map, '\n')) {
    const std::vector<std::string_view> fields = SplitNonEmpty(Trim(line), ' ');
    if (fields.size() == 3) out += static_cast<uint64_t>(ParseInt(fields[2]).value_or(0));
  }
  return out;
}

bool IsWholeMap(std::string_view uid_map) {
  return SplitNonEmpty(Trim(uid_map), ' ') == std::vector<std::string_view>{"0", "0", "4294967295"};
}

bool InUserNamespace() {
  const auto map = ReadSmallFile("/proc/self/uid_map");
  return map.has_value() && !IsWholeMap(*map);
}

}  // namespace muster::agent
