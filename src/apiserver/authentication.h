// src/apiserver/authentication.h
//
// Authenticate: who sends a request. TLS (or being in this process) has proved the Peer, or a token
// proves a service account; a request without credentials is anonymous, one with credentials that
// do not hold is refused.
//
// Thread: the loop thread.

#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "net/http.h"

namespace muster::apiserver {

class Authorizer;
class TokenAuthenticator;

inline constexpr std::string_view kAnonymousUser = "system:anonymous";
inline constexpr std::string_view kUnauthenticatedGroup = "system:unauthenticated";
inline constexpr std::string_view kAuthenticatedGroup = "system:authenticated";
inline constexpr std::string_view kMastersGroup = "system:masters";

struct User {
  std::string name;
  std::vector<std::string> groups;
  std::string uid = {};
  // What else is known, by key.
  std::vector<std::pair<std::string, std::vector<std::string>>> extra = {};
  bool InGroup(std::string_view group) const;
};

// Unauthorized when a certificate or a token does not hold, or the Authorization header has
// something else in it. A certificate goes before a token.
Result<User> Authenticate(const net::Request& request, TokenAuthenticator& tokens, Time now);

// With Impersonate-User (kubectl --as) the user that it names, if `user` may impersonate him, his
// groups, UID and extra; Forbidden otherwise. Without, `user`.
Result<User> Impersonate(User user, const net::Request& request, const Authorizer& authorizer);

}  // namespace muster::apiserver
