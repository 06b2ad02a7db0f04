// src/net/signing_key.h
//
// SigningKey: a P-256 key that signs and checks as ES256 (RFC 7518 3.4): the signature is r and s,
// 32 bytes each. Service account tokens are signed with one.
//
// Life cycle: made or loaded once; immutable, shared.
// Thread:     any. LoadOrCreate() reads and writes a file.
// Invariants: the private part leaves this class only for the key file, which has mode 0600 and
//             appears whole or not at all.

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace muster::net {

inline constexpr size_t kEs256SignatureBytes = 64;

class SigningKey {
 public:
  static std::shared_ptr<const SigningKey> Generate();
  // BadRequest if the text is no private key on P-256.
  static Result<std::shared_ptr<const SigningKey>> FromPem(std::string_view pem);
  // The key in `path`, made there if nothing is. A broken file is an error, never replaced.
  static Result<std::shared_ptr<const SigningKey>> LoadOrCreate(const std::string& path);
  ~SigningKey();

  std::string Sign(std::string_view text) const;
  bool Verify(std::string_view text, std::string_view signature) const;

  // The public part: the point, 32 bytes each, and a name made from it (as upstream's key ids:
  // SHA-256 of its DER form, in base64url without padding).
  const std::string& x() const { return x_; }
  const std::string& y() const { return y_; }
  const std::string& id() const { return id_; }

 private:
  struct Key;
  explicit SigningKey(std::unique_ptr<Key> key);
  std::string Pem() const;

  std::unique_ptr<Key> key_;
  std::string x_, y_, id_;
};

// Base64 with the URL alphabet and without padding (RFC 7515). nullopt for anything else, padding
// and surplus bits included, so that a text has one encoding only.
std::string Base64UrlEncode(std::string_view bytes);
std::optional<std::string> Base64UrlDecode(std::string_view text);

}  // namespace muster::net
