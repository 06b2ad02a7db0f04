// src/net/openssl_error.h
//
// What OpenSSL says of its last failure on this thread.

#pragma once

#include <string>

namespace muster::net {

// The newest error; forgets all of them.
std::string OpenSslError();

}  // namespace muster::net
