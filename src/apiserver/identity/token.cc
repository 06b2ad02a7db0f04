#include "apiserver/identity/token.h"

#include <utility>

#include "base/strings.h"
#include "json/parse.h"
#include "json/write.h"

namespace muster::apiserver {
namespace {

constexpr const char* kPrivateClaims = "kubernetes.io";

ErrorStatus Refused(std::string_view why) {
  return Error(Reason::kUnauthorized, "invalid bearer token, {}", why);
}

json::Value NameClaim(const ObjectName& object) {
  return json::Obj({{"name", object.name}, {"uid", object.uid}});
}

ObjectName ReadName(const json::Value& claim) { return {claim["name"].Str(), claim["uid"].Str()}; }

json::Value ClaimsToJson(const TokenClaims& claims) {
  json::Object own = {{"namespace", claims.ns}};
  for (const auto& [name, object] :
       {std::pair("node", &claims.node), std::pair("pod", &claims.pod),
        std::pair("secret", &claims.secret), std::pair("serviceaccount", &claims.account)}) {
    if (!object->name.empty()) own.emplace_back(name, NameClaim(*object));
  }
  if (claims.warn_after != 0) own.emplace_back("warnafter", claims.warn_after);
  return json::Obj({{"aud", json::Strings(claims.audiences)},
                    {"exp", claims.expires},
                    {"iat", claims.issued},
                    {"iss", claims.issuer},
                    {"jti", claims.id},
                    {kPrivateClaims, json::Value(std::move(own))},
                    {"nbf", claims.not_before},
                    {"sub", claims.subject}});
}

// A segment of a token as the object that it encodes.
Result<json::Value> ReadSegment(std::string_view segment) {
  const std::optional<std::string> text = net::Base64UrlDecode(segment);
  if (!text) return Refused("it is not base64url");
  Result<json::Value> object = json::Parse(*text);
  if (!object || !object->IsObject()) return Refused("it is not made of JSON objects");
  return object;
}

}  // namespace

std::string MakeToken(const net::SigningKey& key, const TokenClaims& claims) {
  const json::Value header = json::Obj({{"alg", "ES256"}, {"kid", key.id()}});
  const std::string text = net::Base64UrlEncode(json::Write(header)) + "." +
                           net::Base64UrlEncode(json::Write(ClaimsToJson(claims)));
  return text + "." + net::Base64UrlEncode(key.Sign(text));
}

Result<TokenClaims> ReadToken(const net::SigningKey& key, std::string_view token) {
  if (token.size() > kMaxTokenBytes) return Refused("it is too long");
  const std::vector<std::string_view> parts = Split(token, '.');
  if (parts.size() != 3) return Refused("it has not three parts");
  ASSIGN_OR_RETURN(const json::Value header, ReadSegment(parts[0]));
  // The algorithm is ours to choose, never the token's.
  if (header["alg"].AsString() != "ES256") return Refused("it is not signed with ES256");
  if (header["kid"].AsString() != key.id()) return Refused("it was signed with another key");
  if (header.Has("crit")) return Refused("it demands extensions");
  const std::optional<std::string> signature = net::Base64UrlDecode(parts[2]);
  const std::string_view text = token.substr(0, parts[0].size() + 1 + parts[1].size());
  if (!signature || !key.Verify(text, *signature)) return Refused("its signature does not fit");

  ASSIGN_OR_RETURN(const json::Value claims, ReadSegment(parts[1]));
  TokenClaims out;
  out.issuer = claims["iss"].Str();
  out.subject = claims["sub"].Str();
  out.id = claims["jti"].Str();
  out.audiences = json::ToStrings(claims["aud"]);
  out.issued = claims["iat"].AsInt();
  out.not_before = claims["nbf"].AsInt();
  out.expires = claims["exp"].AsInt();
  const json::Value& own = claims[kPrivateClaims];
  out.warn_after = own["warnafter"].AsInt();
  out.ns = own["namespace"].Str();
  out.account = ReadName(own["serviceaccount"]);
  out.pod = ReadName(own["pod"]);
  out.node = ReadName(own["node"]);
  out.secret = ReadName(own["secret"]);
  return out;
}

}  // namespace muster::apiserver
