// src/apiserver/identity/openid.h
//
// OpenID discovery: where others find the public key that checks service account tokens.
//
// Thread: the loop thread.

#pragma once

#include <string>

#include "apiserver/call.h"
#include "net/signing_key.h"

namespace muster::apiserver {

// Answers /.well-known/openid-configuration and /openid/v1/jwks; false for other paths.
// `server_address`: "10.0.0.1:6443", or "" for where the client found us.
bool HandleOpenId(Call& call, const net::SigningKey& key, const std::string& server_address);

}  // namespace muster::apiserver
