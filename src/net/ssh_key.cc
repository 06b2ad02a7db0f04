#include "net/ssh_key.h"

#include <cstdint>
#include <memory>
#include <string_view>

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "base/check.h"
#include "base/strings.h"
#include "net/openssl_deleter.h"

namespace muster::net {
namespace {

using KeyPtr = std::unique_ptr<EVP_PKEY, OpensslDeleter<EVP_PKEY_free>>;
using BioPtr = std::unique_ptr<BIO, OpensslDeleter<BIO_free_all>>;

constexpr std::string_view kAlgorithm = "ecdsa-sha2-nistp256";
constexpr std::string_view kCurve = "nistp256";

// A "string" of RFC 4251: its length in four bytes, then itself.
void AddString(std::string& out, std::string_view text) {
  const auto size = static_cast<uint32_t>(text.size());
  for (int shift = 24; shift >= 0; shift -= 8)
    out += static_cast<char>(static_cast<unsigned char>(size >> shift));
  out += text;
}

std::string PrivatePem(EVP_PKEY* key) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  CHECK(PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);  // NOLINT(google-runtime-int): OpenSSL's
  return {data, static_cast<size_t>(size)};
}

std::string PublicLine(EVP_PKEY* key) {
  unsigned char* point = nullptr;
  const size_t size = EVP_PKEY_get1_encoded_public_key(key, &point);
  CHECK(size > 0);
  std::string blob;
  AddString(blob, kAlgorithm);
  AddString(blob, kCurve);
  AddString(blob, {reinterpret_cast<const char*>(point), size});
  OPENSSL_free(point);
  return fmt::format("{} {}\n", kAlgorithm, Base64Encode(blob));
}

}  // namespace

SshKeyPair GenerateSshKey() {
  const KeyPtr key(EVP_EC_gen("P-256"));
  CHECK_MSG(key != nullptr, "OpenSSL makes no P-256 key");
  return {PrivatePem(key.get()), PublicLine(key.get())};
}

}  // namespace muster::net
