// src/apiserver/authentication.h
//
// Authenticate: who sends a request. TLS (or being in this process) has proved the Peer; a request
// without credentials is anonymous, one with credentials that do not hold is refused.
//
// Thread: the loop thread.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "net/http.h"

namespace muster::apiserver {

inline constexpr std::string_view kAnonymousUser = "system:anonymous";
inline constexpr std::string_view kUnauthenticatedGroup = "system:unauthenticated";
inline constexpr std::string_view kAuthenticatedGroup = "system:authenticated";
inline constexpr std::string_view kMastersGroup = "system:masters";

struct User {
  std::string name;
  std::vector<std::string> groups;
  bool InGroup(std::string_view group) const;
};

// Unauthorized when a certificate does not verify, or an Authorization header is present: no token
// is known to this server. With
// Impersonate-User (kubectl --as) the user that it names, for members of system:masters; Forbidden
// for everybody else.
Result<User> Authenticate(const net::Request& request);

}  // namespace muster::apiserver
