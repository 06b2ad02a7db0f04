#include "apiserver/authentication.h"

#include <algorithm>

namespace muster::apiserver {

bool User::InGroup(std::string_view group) const {
  return std::find(groups.begin(), groups.end(), group) != groups.end();
}

Result<User> Authenticate(const net::Request& request) {
  User user;
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

}  // namespace muster::apiserver
