// Bearer tokens: whatever comes, reading it ends, and only what our key signed is taken. The input
// is a token, and also the header and claims of one that is signed well.

#include "apiserver/identity/token.h"
#include "apiserver/identity/token_authenticator.h"
#include "base/check.h"
#include "base/fuzz_test_support.h"
#include "net/signing_key.h"

namespace {

using muster::apiserver::MakeToken;
using muster::apiserver::ReadToken;
using muster::net::Base64UrlDecode;
using muster::net::Base64UrlEncode;

const muster::net::SigningKey& Key() {
  static const auto key = muster::net::SigningKey::Generate();
  return *key;
}

}  // namespace

FUZZ_TARGET(token, input) {
  muster::FuzzInput lines(input);
  const std::string header(lines.Line());
  const std::string claims(lines.Rest());
  // The key is new in every process: nobody can have signed this.
  CHECK(!ReadToken(Key(), header).has_value());
  CHECK(!ReadToken(Key(), claims).has_value());
  const std::string_view token = muster::apiserver::BearerToken(header);
  CHECK(token.size() <= header.size());
  if (const auto bytes = Base64UrlDecode(header)) CHECK(Base64UrlEncode(*bytes) == header);

  const std::string ours = "{\"alg\":\"ES256\",\"kid\":\"" + Key().id() + "\"}";
  for (const std::string& head : {ours, header}) {
    const std::string text = Base64UrlEncode(head) + "." + Base64UrlEncode(claims);
    const auto read = ReadToken(Key(), text + "." + Base64UrlEncode(Key().Sign(text)));
    if (!read) continue;
    // What was understood of it is understood again.
    const auto again = ReadToken(Key(), MakeToken(Key(), *read));
    CHECK(again.has_value() && again->subject == read->subject && again->expires == read->expires &&
          again->audiences == read->audiences && again->pod.name == read->pod.name);
  }
}
