#include "apiserver/identity/openid.h"

#include "apiserver/errors.h"
#include "apiserver/identity/token.h"
#include "json/write.h"

namespace muster::apiserver {
namespace {

constexpr std::string_view kKeysPath = "/openid/v1/jwks";

json::Value Configuration(const std::string& server) {
  return json::Obj({{"issuer", kTokenIssuer},
                    {"jwks_uri", fmt::format("https://{}{}", server, kKeysPath)},
                    {"response_types_supported", json::List({"id_token"})},
                    {"subject_types_supported", json::List({"public"})},
                    {"id_token_signing_alg_values_supported", json::List({"ES256"})}});
}

json::Value Keys(const net::SigningKey& key) {
  return json::Obj({{"keys", json::List({json::Obj({{"use", "sig"},
                                                    {"kty", "EC"},
                                                    {"kid", key.id()},
                                                    {"crv", "P-256"},
                                                    {"alg", "ES256"},
                                                    {"x", net::Base64UrlEncode(key.x())},
                                                    {"y", net::Base64UrlEncode(key.y())}})})}});
}

}  // namespace

bool HandleOpenId(Call& call, const net::SigningKey& key, const std::string& server_address) {
  const std::string& path = call.info().path;
  const bool keys = path == kKeysPath;
  if (!keys && path != "/.well-known/openid-configuration") return false;
  if (call.info().method != "GET" && call.info().method != "HEAD") {
    call.Fail(MethodNotAllowedError());
    return true;
  }
  const std::string_view host = call.request().headers.Get("Host");
  net::Response response;
  response.headers.Add("Content-Type", keys ? "application/jwk-set+json" : "application/json");
  response.headers.Add("Cache-Control", "public, max-age=3600");
  response.body = json::Write(
      keys ? Keys(key)
           : Configuration(server_address.empty() ? std::string(host) : server_address));
  call.Send(std::move(response));
  return true;
}

}  // namespace muster::apiserver
