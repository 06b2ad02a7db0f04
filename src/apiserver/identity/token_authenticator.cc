#include "apiserver/identity/token_authenticator.h"

#include <algorithm>
#include <utility>

#include "apiserver/stored_object.h"
#include "base/strings.h"
#include "json/parse.h"
#include "schema/registry.h"

namespace muster::apiserver {
namespace {

ErrorStatus Refused(std::string_view why) {
  return Error(Reason::kUnauthorized, "invalid bearer token, {}", why);
}

int64_t SecondsOf(Time time) {
  return std::chrono::floor<seconds>(time.time_since_epoch()).count();
}

constexpr int64_t kLeewaySeconds = std::chrono::duration_cast<seconds>(kTokenLeeway).count();

Status CheckTimes(const TokenClaims& claims, Time now) {
  const int64_t at = SecondsOf(now);
  if (at > claims.expires + kLeewaySeconds) return Refused("service account token has expired");
  if (at < claims.not_before - kLeewaySeconds || at < claims.issued - kLeewaySeconds)
    return Refused("service account token is not valid yet");
  return Status::Ok();
}

User UserOf(const TokenClaims& claims) {
  User user;
  user.name = claims.subject;
  user.uid = claims.account.uid;
  user.groups = ServiceAccountGroups(claims.ns);
  user.groups.emplace_back(kAuthenticatedGroup);
  const auto add = [&user](const char* key, std::string value) {
    if (!value.empty()) user.extra.emplace_back(key, std::vector{std::move(value)});
  };
  add("authentication.kubernetes.io/credential-id", "JTI=" + claims.id);
  add("authentication.kubernetes.io/node-name", claims.node.name);
  add("authentication.kubernetes.io/node-uid", claims.node.uid);
  add("authentication.kubernetes.io/pod-name", claims.pod.name);
  add("authentication.kubernetes.io/pod-uid", claims.pod.uid);
  return user;
}

}  // namespace

std::string_view BearerToken(std::string_view authorization) {
  authorization = Trim(authorization);
  constexpr std::string_view kScheme = "bearer ";
  if (authorization.size() <= kScheme.size() ||
      !EqualsIgnoreCase(authorization.substr(0, kScheme.size()), kScheme)) {
    return {};
  }
  return Trim(authorization.substr(kScheme.size()));
}

std::vector<std::string> ServiceAccountGroups(std::string_view ns) {
  return {"system:serviceaccounts", fmt::format("system:serviceaccounts:{}", ns)};
}

std::string ServiceAccountUser(std::string_view ns, std::string_view name) {
  return fmt::format("system:serviceaccount:{}:{}", ns, name);
}

TokenAuthenticator::TokenAuthenticator(const store::Store& store,
                                       std::shared_ptr<const net::SigningKey> key)
    : store_(store), key_(std::move(key)) {}

Result<TokenClaims> TokenAuthenticator::Read(std::string_view token) {
  if (const auto found = verified_.find(token); found != verified_.end()) return found->second;
  ASSIGN_OR_RETURN(TokenClaims claims, ReadToken(*key_, token));
  if (verified_.size() >= kMaxVerifiedTokens) verified_.clear();
  verified_.emplace(token, claims);
  return claims;
}

Result<VerifiedToken> TokenAuthenticator::Authenticate(std::string_view token,
                                                       const std::vector<std::string>& audiences,
                                                       Time now) {
  ASSIGN_OR_RETURN(const TokenClaims claims, Read(token));
  if (claims.issuer != kTokenIssuer ||
      claims.subject != ServiceAccountUser(claims.ns, claims.account.name)) {
    return Refused("it is not of a service account of this cluster");
  }
  RETURN_IF_ERROR(CheckTimes(claims, now));
  const std::vector<std::string> own = {std::string(kTokenIssuer)};
  VerifiedToken verified;
  for (const std::string& audience : audiences.empty() ? own : audiences) {
    if (std::ranges::find(claims.audiences, audience) != claims.audiences.end())
      verified.audiences.push_back(audience);
  }
  if (verified.audiences.empty()) return Refused("token audiences do not include this one");
  RETURN_IF_ERROR(CheckObjects(claims, now));
  verified.user = UserOf(claims);
  return verified;
}

Status TokenAuthenticator::CheckObjects(const TokenClaims& claims, Time now) const {
  RETURN_IF_ERROR(CheckObject("serviceaccounts", claims.ns, claims.account, now));
  if (!claims.pod.name.empty()) return CheckObject("pods", claims.ns, claims.pod, now);
  if (!claims.secret.name.empty()) return CheckObject("secrets", claims.ns, claims.secret, now);
  // Beside a pod the node is only information.
  if (!claims.node.name.empty()) return CheckObject("nodes", "", claims.node, now);
  return Status::Ok();
}

Status TokenAuthenticator::CheckObject(std::string_view plural, std::string_view ns,
                                       const ObjectName& object, Time now) const {
  const schema::KindPtr kind = schema::Registry::BuiltIn().Find("", "v1", plural);
  const store::EntryPtr entry = store_.Get(ObjectKey(*kind, ns, object.name));
  if (entry == nullptr) return Refused("the object that it is bound to does not exist");
  const Result<json::Value> metadata = json::Parse(MetadataOf(*entry));
  if (!metadata || (*metadata)["uid"].AsString() != object.uid)
    return Refused("the object that it is bound to was made anew");
  const std::optional<Time> deleted = ParseTime((*metadata)["deletionTimestamp"].AsString());
  if (deleted && *deleted + kTokenLeeway < now)
    return Refused("the object that it is bound to has been deleted");
  return Status::Ok();
}

}  // namespace muster::apiserver
