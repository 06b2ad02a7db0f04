#include "net/sha1.h"

#include <openssl/evp.h>

#include "base/check.h"
#include "base/strings.h"

namespace muster::net {

std::string Sha1Hex(std::string_view text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  CHECK(EVP_Digest(text.data(), text.size(), digest, &size, EVP_sha1(), nullptr) == 1);
  return HexEncode({reinterpret_cast<const char*>(digest), size});
}

}  // namespace muster::net
