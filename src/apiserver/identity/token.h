// src/apiserver/identity/token.h
//
// Service account tokens: JSON Web Tokens signed with ES256, with upstream's claims.
//
// Thread: any (pure functions).
// Invariants: what ReadToken() gives was signed with this key; nothing of a token goes into an
//             error's text.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "net/signing_key.h"

namespace muster::apiserver {

inline constexpr std::string_view kTokenIssuer = "https://kubernetes.default.svc.cluster.local";
inline constexpr size_t kMaxTokenBytes = 16 * 1024;  // a longer one is refused unread

struct ObjectName {
  std::string name, uid;  // "" for both: none
};

struct TokenClaims {
  std::string issuer, subject, id;
  std::vector<std::string> audiences;
  int64_t issued = 0, not_before = 0, expires = 0;  // seconds since 1970
  int64_t warn_after = 0;                           // 0: no such claim
  std::string ns;
  ObjectName account, pod, node, secret;
};

std::string MakeToken(const net::SigningKey& key, const TokenClaims& claims);

// Unauthorized, and why, for whatever is no token of this key. Times, audiences and whether the
// objects still exist are for the caller.
Result<TokenClaims> ReadToken(const net::SigningKey& key, std::string_view token);

}  // namespace muster::apiserver
