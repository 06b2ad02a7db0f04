// src/net/ssh_key.h
//
// A new key for ssh: ECDSA on P-256, in the forms that OpenSSH reads.
//
// Thread:     any.

#pragma once

#include <string>

namespace muster::net {

struct SshKeyPair {
  std::string private_pem;  // PKCS #8, as ~/.ssh/id_*
  std::string public_line;  // "ecdsa-sha2-nistp256 AAAA...\n", as authorized_keys (RFC 5656 3.1)
};

SshKeyPair GenerateSshKey();

}  // namespace muster::net
