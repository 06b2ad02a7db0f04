#include "net/openssl_error.h"

#include <openssl/err.h>

namespace muster::net {

std::string OpenSslError() {
  char text[256] = "unknown error";
  const unsigned long code = ERR_peek_last_error();  // NOLINT(google-runtime-int): OpenSSL's type
  if (code != 0) ERR_error_string_n(code, text, sizeof text);
  ERR_clear_error();
  return text;
}

}  // namespace muster::net
