#include "apiserver/authentication.h"

#include <algorithm>

#include "base/strings.h"

namespace muster::apiserver {
namespace {

// The user that the connection proves.
Result<User> PeerUser(const net::Request& request) {
  User user;
  if (!request.peer.refused.empty()) return Error(Reason::kUnauthorized, "Unauthorized");
  if (!request.peer.user.empty()) {
    user.name = request.peer.user;
    user.groups = request.peer.groups;
    if (!user.InGroup(kAuthenticatedGroup)) user.groups.emplace_back(kAuthenticatedGroup);
    return user;
  }
  if (request.headers.Has("Authorization")) return Error(Reason::kUnauthorized, "Unauthorized");
  user.name = std::string(kAnonymousUser);
  user.groups.emplace_back(kUnauthenticatedGroup);
  return user;
}

}  // namespace

bool User::InGroup(std::string_view group) const {
  return std::find(groups.begin(), groups.end(), group) != groups.end();
}

Result<User> Authenticate(const net::Request& request) {
  ASSIGN_OR_RETURN(User user, PeerUser(request));
  User other;
  bool wanted = false;
  for (const auto& [name, value] : request.headers.list()) {
    if (!ToLower(name).starts_with("impersonate-")) continue;
    wanted = true;
    if (EqualsIgnoreCase(name, "Impersonate-User")) other.name = value;
    if (EqualsIgnoreCase(name, "Impersonate-Group")) other.groups.push_back(value);
  }
  if (!wanted) return user;
  if (!user.InGroup(kMastersGroup)) {
    return Error(Reason::kForbidden,
                 "users \"{}\" is forbidden: User \"{}\" cannot impersonate resource \"users\" in "
                 "API group \"\" at the cluster scope",
                 other.name, user.name);
  }
  if (other.name.empty()) {
    return Error(Reason::kBadRequest,
                 "requested impersonation of groups or extra fields without "
                 "a user: send Impersonate-User");
  }
  const bool anonymous = other.name == kAnonymousUser;
  other.groups.emplace_back(anonymous ? kUnauthenticatedGroup : kAuthenticatedGroup);
  return other;
}

}  // namespace muster::apiserver
