// src/agent/user_node/user_identity.h
//
// Who an ordinary user can be inside a user namespace: the lists of /etc/subuid and /etc/subgid,
// and the kernel's maps of user ids.
//
// Thread:  any; the parsers are pure.
// Sources: subuid(5), newuidmap(1), user_namespaces(7).

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace muster::agent {

struct IdRange {
  uint32_t first = 0;
  uint32_t count = 0;
  bool operator==(const IdRange&) const = default;
};

// What images and Debian packages need: ids up to `nobody`.
inline constexpr uint32_t kMaxSubordinateIds = 65'536;

// The first range of "name:first:count" lines that is the user's, by name or number, cut to
// kMaxSubordinateIds; nullopt: he has none.
std::optional<IdRange> SubordinateRange(std::string_view text, std::string_view user_name,
                                        uint32_t user_id);

// What the calling user may give his programs as ids of others.
struct SubordinateIds {
  IdRange users, groups;
};
// nullopt where he has no ranges or the programs newuidmap and newgidmap are missing.
std::optional<SubordinateIds> OwnSubordinateIds();

// The arguments of newuidmap and newgidmap: id 0 is the user, ids from 1 on are his range.
std::vector<std::string> MapArguments(pid_t pid, uint32_t own_id, IdRange range);

// In the calling process' new user namespace: id 0 is the user, and there is no other.
Status MapOwnId(uid_t user, gid_t group);
// In the new user namespace of the child `pid`, by newuidmap and newgidmap.
Status MapSubordinateIds(pid_t pid, const SubordinateIds& ids);

// How many ids /proc/self/uid_map or gid_map knows.
uint64_t MappedIds(std::string_view map);
// True for /proc/self/uid_map outside of every user namespace.
bool IsWholeMap(std::string_view uid_map);
// Of the calling process: overlays of `/`, device nodes and other users' files are out of reach
// then, also for root.
bool InUserNamespace();

}  // namespace muster::agent
