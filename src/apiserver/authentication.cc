#include "apiserver/authentication.h"

#include <algorithm>

#include "apiserver/authorization.h"
#include "apiserver/identity/token_authenticator.h"
#include "base/strings.h"

namespace muster::apiserver {
namespace {

constexpr std::string_view kServiceAccountPrefix = "system:serviceaccount:";
constexpr std::string_view kExtraHeader = "impersonate-extra-";
constexpr std::string_view kAuthenticationGroup = "authentication.k8s.io";

ErrorStatus Unauthorized() { return Error(Reason::kUnauthorized, "Unauthorized"); }

// What the Impersonate-* headers ask for.
struct Wish {
  bool any = false;
  User user;
};

Wish ReadWish(const net::Request& request) {
  Wish wish;
  for (const auto& [name, value] : request.headers.list()) {
    const std::string lower = ToLower(name);
    if (!lower.starts_with("impersonate-")) continue;
    wish.any = true;
    if (lower == "impersonate-user") wish.user.name = value;
    if (lower == "impersonate-group") wish.user.groups.push_back(value);
    if (lower == "impersonate-uid") wish.user.uid = value;
    if (!lower.starts_with(kExtraHeader)) continue;
    const std::string key = PercentDecode(lower.substr(kExtraHeader.size()), false).value_or("");
    const auto found =
        std::ranges::find(wish.user.extra, key, [](const auto& entry) { return entry.first; });
    if (found != wish.user.extra.end()) {
      found->second.push_back(value);
    } else {
      wish.user.extra.emplace_back(key, std::vector<std::string>{value});
    }
  }
  return wish;
}

RequestInfo ImpersonationOf(std::string_view group, std::string_view resource,
                            const std::string& name) {
  RequestInfo info;
  info.is_resource = true;
  info.verb = "impersonate";
  info.group = group;
  info.resource = resource;
  info.name = name;
  return info;
}

// (namespace, name) of a service account's user name; empty for other users.
std::pair<std::string, std::string> ServiceAccountOf(std::string_view user) {
  if (!user.starts_with(kServiceAccountPrefix)) return {};
  const std::vector<std::string_view> parts = Split(user.substr(kServiceAccountPrefix.size()), ':');
  if (parts.size() != 2 || parts[0].empty() || parts[1].empty()) return {};
  return {std::string(parts[0]), std::string(parts[1])};
}

// Whether `user` may become each part of `other`.
Status CheckWish(const User& user, const User& other, const Authorizer& authorizer) {
  RequestInfo who = ImpersonationOf("", "users", other.name);
  if (const auto [ns, name] = ServiceAccountOf(other.name); !name.empty()) {
    who = ImpersonationOf("", "serviceaccounts", name);
    who.ns = ns;
  }
  RETURN_IF_ERROR(authorizer.Authorize(user, who));
  for (const std::string& group : other.groups)
    RETURN_IF_ERROR(authorizer.Authorize(user, ImpersonationOf("", "groups", group)));
  if (!other.uid.empty()) {
    RETURN_IF_ERROR(
        authorizer.Authorize(user, ImpersonationOf(kAuthenticationGroup, "uids", other.uid)));
  }
  for (const auto& [key, values] : other.extra) {
    for (const std::string& value : values) {
      RequestInfo info = ImpersonationOf(kAuthenticationGroup, "userextras", value);
      info.subresource = key;
      RETURN_IF_ERROR(authorizer.Authorize(user, info));
    }
  }
  return Status::Ok();
}

}  // namespace

bool User::InGroup(std::string_view group) const {
  return std::find(groups.begin(), groups.end(), group) != groups.end();
}

Result<User> Authenticate(const net::Request& request, TokenAuthenticator& tokens, Time now) {
  User user;
  if (!request.peer.refused.empty()) return Unauthorized();
  if (!request.peer.user.empty()) {
    user.name = request.peer.user;
    user.groups = request.peer.groups;
    if (!user.InGroup(kAuthenticatedGroup)) user.groups.emplace_back(kAuthenticatedGroup);
    return user;
  }
  if (request.headers.Has("Authorization")) {
    const std::string_view token = BearerToken(request.headers.Get("Authorization"));
    if (token.empty()) return Unauthorized();
    Result<VerifiedToken> verified = tokens.Authenticate(token, {}, now);
    if (!verified) return Unauthorized();
    return std::move(verified->user);
  }
  user.name = std::string(kAnonymousUser);
  user.groups.emplace_back(kUnauthenticatedGroup);
  return user;
}

Result<User> Impersonate(User user, const net::Request& request, const Authorizer& authorizer) {
  Wish wish = ReadWish(request);
  if (!wish.any) return user;
  User other = std::move(wish.user);
  if (other.name.empty()) {
    return Error(Reason::kBadRequest,
                 "requested impersonation of groups or extra fields without "
                 "a user: send Impersonate-User");
  }
  RETURN_IF_ERROR(CheckWish(user, other, authorizer));
  if (const auto [ns, name] = ServiceAccountOf(other.name); !name.empty() && other.groups.empty())
    other.groups = ServiceAccountGroups(ns);
  const std::string_view own =
      other.name == kAnonymousUser ? kUnauthenticatedGroup : kAuthenticatedGroup;
  if (!other.InGroup(own)) other.groups.emplace_back(own);
  return other;
}

}  // namespace muster::apiserver
