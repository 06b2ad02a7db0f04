#include "apiserver/identity/token.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/parse.h"
#include "json/write.h"

namespace muster::apiserver {
namespace {

const net::SigningKey& Key() {
  static const auto key = net::SigningKey::Generate();
  return *key;
}

TokenClaims Claims() {
  TokenClaims claims;
  claims.issuer = kTokenIssuer;
  claims.subject = "system:serviceaccount:ns:a";
  claims.id = "id";
  claims.audiences = {"x", "y"};
  claims.issued = claims.not_before = 1000;
  claims.expires = 2000;
  claims.ns = "ns";
  claims.account = {"a", "uid-a"};
  claims.pod = {"p", "uid-p"};
  claims.node = {"n", "uid-n"};
  return claims;
}

// A token with these texts as header and claims, signed by `key`.
std::string Sign(const net::SigningKey& key, std::string_view header, std::string_view claims) {
  const std::string text = net::Base64UrlEncode(header) + "." + net::Base64UrlEncode(claims);
  return text + "." + net::Base64UrlEncode(key.Sign(text));
}

std::string WhyNot(std::string_view token) {
  const Result<TokenClaims> claims = ReadToken(Key(), token);
  if (claims) return "";
  EXPECT_EQ(claims.error().reason(), Reason::kUnauthorized);
  return claims.error().message();
}

TEST(TokenTest, HasUpstreamsClaims) {
  TokenClaims claims = Claims();
  claims.warn_after = 1500;
  const std::string token = MakeToken(Key(), claims);
  const std::vector<std::string_view> parts = Split(token, '.');
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(*net::Base64UrlDecode(parts[0]),
            fmt::format(R"({{"alg":"ES256","kid":"{}"}})", Key().id()));
  EXPECT_EQ(
      *net::Base64UrlDecode(parts[1]),
      R"({"aud":["x","y"],"exp":2000,"iat":1000,"iss":"https://kubernetes.default.svc.cluster.local",)"
      R"("jti":"id","kubernetes.io":{"namespace":"ns","node":{"name":"n","uid":"uid-n"},)"
      R"("pod":{"name":"p","uid":"uid-p"},"serviceaccount":{"name":"a","uid":"uid-a"},)"
      R"("warnafter":1500},"nbf":1000,"sub":"system:serviceaccount:ns:a"})");
  const Result<TokenClaims> read = ReadToken(Key(), token);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->subject, claims.subject);
  EXPECT_EQ(read->audiences, claims.audiences);
  EXPECT_EQ(read->pod.uid, "uid-p");
  EXPECT_EQ(read->warn_after, 1500);
}

TEST(TokenTest, NoTamperedTokenIsRead) {
  const std::string token = MakeToken(Key(), Claims());
  for (size_t i = 0; i < token.size(); ++i) {
    std::string bad = token;
    bad[i] = bad[i] == 'A' ? 'B' : 'A';
    EXPECT_NE(WhyNot(bad), "") << i;
  }
  EXPECT_NE(WhyNot(token + "A"), "");
  EXPECT_NE(WhyNot(token + "."), "");
  EXPECT_NE(WhyNot(token.substr(0, token.rfind('.'))), "");
  EXPECT_NE(WhyNot(token.substr(0, token.rfind('.') + 1)), "");
  EXPECT_NE(WhyNot(MakeToken(*net::SigningKey::Generate(), Claims())), "");
}

TEST(TokenTest, TheAlgorithmIsNotTheTokensToChoose) {
  const std::string claims = R"({"sub":"system:serviceaccount:ns:a"})";
  const auto header = [](const char* alg) {
    return fmt::format(R"({{"alg":"{}","kid":"{}"}})", alg, Key().id());
  };
  EXPECT_EQ(WhyNot(Sign(Key(), header("ES256"), claims)), "");
  for (const char* alg : {"none", "None", "", "HS256", "RS256", "ES384", "es256"})
    EXPECT_NE(WhyNot(Sign(Key(), header(alg), claims)), "") << alg;
  const std::string unsigned_token =
      net::Base64UrlEncode(header("none")) + "." + net::Base64UrlEncode(claims) + ".";
  EXPECT_NE(WhyNot(unsigned_token), "");
  // Another key's name, none, and extensions that must be understood.
  EXPECT_NE(WhyNot(Sign(Key(), R"({"alg":"ES256","kid":"other"})", claims)), "");
  EXPECT_NE(WhyNot(Sign(Key(), R"({"alg":"ES256"})", claims)), "");
  EXPECT_NE(
      WhyNot(Sign(Key(), fmt::format(R"({{"alg":"ES256","kid":"{}","crit":["b64"]}})", Key().id()),
                  claims)),
      "");
}

TEST(TokenTest, WhatIsNoTokenIsRefusedWithoutATrace) {
  for (const char* bad : {"", ".", "..", "...", "a.b.c", "secret", "e30.e30.e30", "e30.e30",
                          "\xff.\xff.\xff", "bnVsbA.bnVsbA.bnVsbA"}) {
    const std::string why = WhyNot(bad);
    EXPECT_NE(why, "") << bad;
    EXPECT_EQ(why.find("secret"), std::string::npos);
  }
  EXPECT_NE(WhyNot(std::string(kMaxTokenBytes + 1, 'A')).find("too long"), std::string::npos);
  EXPECT_EQ(WhyNot(std::string(kMaxTokenBytes, 'A')).find("too long"), std::string::npos);
  const std::string header = fmt::format(R"({{"alg":"ES256","kid":"{}"}})", Key().id());
  for (const char* claims : {"", "[]", "null", "{", R"("x")"})
    EXPECT_NE(WhyNot(Sign(Key(), header, claims)), "") << claims;
}

TEST(TokenTest, ClaimsOfOtherTypesReadAsNothing) {
  const std::string header = fmt::format(R"({{"alg":"ES256","kid":"{}"}})", Key().id());
  const Result<TokenClaims> claims = ReadToken(
      Key(), Sign(Key(), header,
                  R"({"aud":"x","exp":1e400,"nbf":"1","sub":7,"kubernetes.io":[{"pod":1}]})"));
  ASSERT_TRUE(claims.has_value());
  EXPECT_EQ(claims->subject, "");
  EXPECT_TRUE(claims->audiences.empty());
  EXPECT_EQ(claims->expires, 0);
}

}  // namespace
}  // namespace muster::apiserver
