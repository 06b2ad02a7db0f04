// src/apiserver/identity/token_authenticator.h
//
// TokenAuthenticator: whose service account token is this? Its signature is checked once and
// remembered; its times, its audience and whether its account and pod still exist are looked at for
// every request.
//
// Life cycle: a member of the server.
// Thread:     the loop thread.
// Invariants: at most kMaxVerifiedTokens are remembered.

#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/authentication.h"
#include "apiserver/identity/token.h"
#include "base/status.h"
#include "base/time.h"
#include "net/signing_key.h"
#include "store/store.h"

namespace muster::apiserver {

inline constexpr size_t kMaxVerifiedTokens = 1000;
// Clocks may differ by this much; what is being deleted counts for this long (as upstream).
inline constexpr Duration kTokenLeeway = minutes(1);

struct VerifiedToken {
  User user;
  std::vector<std::string> audiences;  // those of the wanted ones that the token is for
};

class TokenAuthenticator {
 public:
  // REQUIRES: `store` outlives it.
  TokenAuthenticator(const store::Store& store, std::shared_ptr<const net::SigningKey> key);

  // `audiences`: of whom the token must be for at least one; none: of this server. Unauthorized,
  // and why.
  Result<VerifiedToken> Authenticate(std::string_view token,
                                     const std::vector<std::string>& audiences, Time now);

  const net::SigningKey& key() const { return *key_; }
  size_t remembered() const { return verified_.size(); }

 private:
  Result<TokenClaims> Read(std::string_view token);
  Status CheckObjects(const TokenClaims& claims, Time now) const;
  Status CheckObject(std::string_view plural, std::string_view ns, const ObjectName& object,
                     Time now) const;

  const store::Store& store_;
  std::shared_ptr<const net::SigningKey> key_;
  std::map<std::string, TokenClaims, std::less<>> verified_;  // by token
};

// The token of "Authorization: Bearer TOKEN"; "" for any other value.
std::string_view BearerToken(std::string_view authorization);

// system:serviceaccounts and system:serviceaccounts:NS.
std::vector<std::string> ServiceAccountGroups(std::string_view ns);
// system:serviceaccount:NS:NAME
std::string ServiceAccountUser(std::string_view ns, std::string_view name);

}  // namespace muster::apiserver
