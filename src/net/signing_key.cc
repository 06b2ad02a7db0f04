#include "net/signing_key.h"

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/x509.h>

#include "base/check.h"
#include "base/files.h"
#include "base/strings.h"
#include "net/openssl_deleter.h"

namespace muster::net {
namespace {

constexpr size_t kCoordinateBytes = 32;
constexpr std::string_view kCurve = "prime256v1";  // OpenSSL's name of P-256

using KeyPtr = std::unique_ptr<EVP_PKEY, OpensslDeleter<EVP_PKEY_free>>;
using BioPtr = std::unique_ptr<BIO, OpensslDeleter<BIO_free_all>>;
using ContextPtr = std::unique_ptr<EVP_MD_CTX, OpensslDeleter<EVP_MD_CTX_free>>;
using SignaturePtr = std::unique_ptr<ECDSA_SIG, OpensslDeleter<ECDSA_SIG_free>>;
using NumberPtr = std::unique_ptr<BIGNUM, OpensslDeleter<BN_free>>;

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::string Padded(const BIGNUM* number) {
  std::string out(kCoordinateBytes, '\0');
  CHECK(BN_bn2binpad(number, reinterpret_cast<unsigned char*>(out.data()),
                     static_cast<int>(out.size())) == static_cast<int>(out.size()));
  return out;
}

std::string Coordinate(EVP_PKEY* key, const char* name) {
  BIGNUM* number = nullptr;
  CHECK(EVP_PKEY_get_bn_param(key, name, &number) == 1);
  const NumberPtr owner(number);
  return Padded(number);
}

std::string KeyId(EVP_PKEY* key) {
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(key, &der);
  CHECK(size > 0);
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(der, static_cast<size_t>(size), digest);
  OPENSSL_free(der);
  return Base64UrlEncode({reinterpret_cast<const char*>(digest), sizeof digest});
}

bool IsOnP256(EVP_PKEY* key) {
  char name[64];
  size_t size = 0;
  return EVP_PKEY_get_utf8_string_param(key, OSSL_PKEY_PARAM_GROUP_NAME, name, sizeof name,
                                        &size) == 1 &&
         std::string_view(name, size) == kCurve;
}

}  // namespace

struct SigningKey::Key {
  KeyPtr key;
};

SigningKey::SigningKey(std::unique_ptr<Key> key)
    : key_(std::move(key)),
      x_(Coordinate(key_->key.get(), OSSL_PKEY_PARAM_EC_PUB_X)),
      y_(Coordinate(key_->key.get(), OSSL_PKEY_PARAM_EC_PUB_Y)),
      id_(KeyId(key_->key.get())) {}

SigningKey::~SigningKey() = default;

std::shared_ptr<const SigningKey> SigningKey::Generate() {
  KeyPtr key(EVP_EC_gen("P-256"));
  CHECK_MSG(key != nullptr, "OpenSSL makes no P-256 key");
  return std::shared_ptr<const SigningKey>(
      new SigningKey(std::make_unique<Key>(Key{std::move(key)})));
}

Result<std::shared_ptr<const SigningKey>> SigningKey::FromPem(std::string_view pem) {
  const BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  KeyPtr key(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
  const bool good = key != nullptr && IsOnP256(key.get());
  ERR_clear_error();
  if (!good) return Error(Reason::kBadRequest, "not a private key on P-256 in the PEM format");
  return std::shared_ptr<const SigningKey>(
      new SigningKey(std::make_unique<Key>(Key{std::move(key)})));
}

Result<std::shared_ptr<const SigningKey>> SigningKey::LoadOrCreate(const std::string& path) {
  const Result<std::string> pem = ReadSmallFile(path);
  if (pem) {
    Result<std::shared_ptr<const SigningKey>> key = FromPem(*pem);
    if (!key) return Error(key.error().WithPrefix(path + ": "));
    return key;
  }
  if (pem.error().reason() != Reason::kNotFound) return Error(pem.error());
  std::shared_ptr<const SigningKey> made = Generate();
  RETURN_IF_ERROR(WriteFileAtomic(path, made->Pem(), 0600, true));
  return made;
}

std::string SigningKey::Pem() const {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  CHECK(PEM_write_bio_PrivateKey(bio.get(), key_->key.get(), nullptr, nullptr, 0, nullptr,
                                 nullptr) == 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);  // NOLINT(google-runtime-int): OpenSSL's
  return {data, static_cast<size_t>(size)};
}

std::string SigningKey::Sign(std::string_view text) const {
  const ContextPtr context(EVP_MD_CTX_new());
  unsigned char der[128];  // two integers of 33 bytes and their heads
  size_t size = sizeof der;
  CHECK(EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key_->key.get()) == 1);
  CHECK(EVP_DigestSign(context.get(), der, &size, Bytes(text), text.size()) == 1);
  const unsigned char* at = der;
  const SignaturePtr signature(d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(size)));  // NOLINT
  CHECK(signature != nullptr);
  return Padded(ECDSA_SIG_get0_r(signature.get())) + Padded(ECDSA_SIG_get0_s(signature.get()));
}

bool SigningKey::Verify(std::string_view text, std::string_view signature) const {
  if (signature.size() != kEs256SignatureBytes) return false;
  const SignaturePtr parts(ECDSA_SIG_new());
  const auto number = [&](size_t at) {
    return BN_bin2bn(Bytes(signature.substr(at)), static_cast<int>(kCoordinateBytes), nullptr);
  };
  CHECK(ECDSA_SIG_set0(parts.get(), number(0), number(kCoordinateBytes)) == 1);
  unsigned char* der = nullptr;
  const int size = i2d_ECDSA_SIG(parts.get(), &der);
  CHECK(size > 0);
  const ContextPtr context(EVP_MD_CTX_new());
  const bool good =
      EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, key_->key.get()) == 1 &&
      EVP_DigestVerify(context.get(), der, static_cast<size_t>(size), Bytes(text), text.size()) ==
          1;
  OPENSSL_free(der);
  ERR_clear_error();
  return good;
}

std::string Base64UrlEncode(std::string_view bytes) {
  std::string out = Base64Encode(bytes);
  while (out.ends_with('=')) out.pop_back();
  for (char& letter : out) {
    if (letter == '+') letter = '-';
    if (letter == '/') letter = '_';
  }
  return out;
}

std::optional<std::string> Base64UrlDecode(std::string_view text) {
  std::string usual;
  for (const char letter : text) {
    if (letter == '+' || letter == '/' || letter == '=') return std::nullopt;
    usual += letter == '-' ? '+' : letter == '_' ? '/' : letter;
  }
  usual.append((4 - usual.size() % 4) % 4, '=');
  std::optional<std::string> bytes = Base64Decode(usual);
  // Surplus bits that are set would be another text of the same bytes.
  if (!bytes || Base64UrlEncode(*bytes) != text) return std::nullopt;
  return bytes;
}

}  // namespace muster::net
