// Tokens and roles through the whole server, in simulated time.

#include <gtest/gtest.h>

#include "apiserver/apiserver_testing.h"
#include "apiserver/identity/default_roles.h"
#include "apiserver/identity/policy_rule.h"
#include "apiserver/identity/token_authenticator.h"
#include "base/strings.h"

namespace muster::apiserver {
namespace {

constexpr const char* kAccounts = "/api/v1/namespaces/default/serviceaccounts";
constexpr const char* kPods = "/api/v1/namespaces/default/pods";
constexpr const char* kRbacNs = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
constexpr const char* kReader =
    R"({"metadata": {"name": "reader"}, "rules": [{"apiGroups": [""], "resources": ["pods"], )"
    R"("verbs": ["get", "list"]}]})";
constexpr const char* kBinding =
    R"({"metadata": {"name": "b"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", )"
    R"("kind": "Role", "name": "reader"}, )"
    R"("subjects": [{"kind": "ServiceAccount", "name": "a", "namespace": "default"}]})";

class IdentityTest : public testing::Test {
 protected:
  IdentityTest() {
    ServerOptions options;
    options.token_key = key_;
    test_ = std::make_unique<TestServer>(std::move(options));
    Post(kAccounts, R"({"metadata": {"name": "a"}})");
  }

  TestServer::WriterPtr Post(const std::string& target, const std::string& body, int status = 201) {
    auto writer = test_->Send("POST", target, body, Json());
    EXPECT_EQ(writer->status, status) << writer->body;
    return writer;
  }
  static net::Headers Json() {
    net::Headers headers;
    headers.Add("Content-Type", "application/json");
    return headers;
  }

  std::string Token(const std::string& spec = "{}") {
    const auto writer = Post(std::string(kAccounts) + "/a/token", "{\"spec\": " + spec + "}");
    return TestServer::Json(*writer)["status"]["token"].Str();
  }

  // A request whose only credential is its Authorization header.
  TestServer::WriterPtr Ask(const std::string& authorization, const std::string& target,
                            const std::string& method = "GET", const std::string& body = "") {
    net::Request request;
    request.method = method;
    request.target = target;
    request.body = body;
    request.headers = Json();
    request.headers.Add("Authorization", authorization);
    auto writer = std::make_shared<FakeWriter>();
    test_->server->Handle(std::move(request), writer);
    test_->loop.RunReady();
    return writer;
  }
  int Code(const std::string& token, const std::string& target) {
    return Ask("Bearer " + token, target)->status;
  }

  std::string CreatePod() {
    const auto writer = Post(kPods, R"({"metadata": {"name": "p"}, "spec": {"serviceAccountName": )"
                                    R"("a", "containers": [{"name": "c", "image": "i"}]}})");
    return TestServer::Json(*writer)["metadata"]["uid"].Str();
  }

  std::shared_ptr<const net::SigningKey> key_ = net::SigningKey::Generate();
  std::unique_ptr<TestServer> test_;
};

TEST_F(IdentityTest, ATokenIsItsServiceAccount) {
  const auto writer =
      Ask("Bearer " + Token(), "/apis/authentication.k8s.io/v1/selfsubjectreviews", "POST", "{}");
  ASSERT_EQ(writer->status, 201) << writer->body;
  const json::Value info = TestServer::Json(*writer)["status"]["userInfo"];
  EXPECT_EQ(info["username"].AsString(), "system:serviceaccount:default:a");
  EXPECT_EQ(info["groups"], json::List({"system:serviceaccounts", "system:serviceaccounts:default",
                                        "system:authenticated"}));
  EXPECT_FALSE(info["uid"].AsString().empty());
  EXPECT_TRUE(
      info["extra"]["authentication.kubernetes.io/credential-id"].At(0).AsString().starts_with(
          "JTI="));
}

TEST_F(IdentityTest, WithoutARoleItMayNothing) {
  const auto writer = Ask("Bearer " + Token(), kPods);
  EXPECT_EQ(writer->status, 403);
  EXPECT_EQ(TestServer::Json(*writer)["message"].AsString(),
            "pods is forbidden: User \"system:serviceaccount:default:a\" cannot list resource "
            "\"pods\" in API group \"\" in the namespace \"default\"");
}

TEST_F(IdentityTest, ARoleCountsWhenItsBindingIsAnswered) {
  const std::string token = Token();
  Post(std::string(kRbacNs) + "/rolebindings", kBinding);
  EXPECT_EQ(TestServer::Json(*Ask("Bearer " + token, kPods))["message"].AsString(),
            "pods is forbidden: User \"system:serviceaccount:default:a\" cannot list resource "
            "\"pods\" in API group \"\" in the namespace \"default\": RBAC: "
            "role.rbac.authorization.k8s.io \"reader\" not found");
  Post(std::string(kRbacNs) + "/roles", kReader);
  EXPECT_EQ(Code(token, kPods), 200);
  EXPECT_EQ(Code(token, "/api/v1/pods"), 403);
  EXPECT_EQ(Code(token, "/api/v1/namespaces/kube-system/pods"), 403);
  test_->Send("DELETE", std::string(kRbacNs) + "/rolebindings/b");
  EXPECT_EQ(Code(token, kPods), 403);
}

TEST_F(IdentityTest, EndsAtItsTime) {
  const std::string token = Token(R"({"expirationSeconds": 600})");
  EXPECT_EQ(Code(token, kPods), 403);
  test_->loop.RunFor(seconds(600) + kTokenLeeway);
  EXPECT_EQ(Code(token, kPods), 403);
  test_->loop.RunFor(seconds(1));
  const auto writer = Ask("Bearer " + token, kPods);
  EXPECT_EQ(writer->status, 401);
  EXPECT_EQ(TestServer::Json(*writer)["message"].AsString(), "Unauthorized");
  EXPECT_EQ(TestServer::Json(*writer)["reason"].AsString(), "Unauthorized");
}

TEST_F(IdentityTest, AClockThatIsBehindIsForgivenAMinute) {
  TokenClaims claims;
  claims.issuer = kTokenIssuer;
  claims.subject = "system:serviceaccount:default:a";
  claims.audiences = {std::string(kTokenIssuer)};
  claims.ns = "default";
  claims.account = {
      "a", TestServer::Json(*test_->Send("GET", std::string(kAccounts) + "/a"))["metadata"]["uid"]
               .Str()};
  const int64_t now = std::chrono::floor<seconds>(test_->loop.Now().time_since_epoch()).count();
  claims.expires = now + 1000;
  for (const auto& [ahead, status] : {std::pair(0, 403), {60, 403}, {61, 401}, {100000, 401}}) {
    claims.issued = claims.not_before = now + ahead;
    EXPECT_EQ(Code(MakeToken(*key_, claims), kPods), status) << ahead;
  }
  claims.issued = claims.not_before = now;
  claims.issuer = "https://other";
  EXPECT_EQ(Code(MakeToken(*key_, claims), kPods), 401);
  claims.issuer = kTokenIssuer;
  claims.subject = "system:serviceaccount:default:other";
  EXPECT_EQ(Code(MakeToken(*key_, claims), kPods), 401);
}

TEST_F(IdentityTest, WhatDoesNotHoldIs401) {
  const std::string token = Token();
  std::string tampered = token;
  tampered[token.size() / 2] ^= 1;
  EXPECT_EQ(Code(tampered, kPods), 401);
  EXPECT_EQ(Code(std::string(100000, 'A'), kPods), 401);
  for (const char* other : {"", "Bearer", "Bearer ", "Basic YTpi", "bearer x y", "Token x"})
    EXPECT_EQ(Ask(other, kPods)->status, 401) << other;
  EXPECT_EQ(Ask("Basic " + token, kPods)->status, 401);
  EXPECT_EQ(Ask("bearer  " + token + " ", kPods)->status, 403);
  // Also where nobody needs to be known.
  EXPECT_EQ(Code(tampered, "/version"), 401);
  // Another cluster's.
  TestServer other;
  other.Send("POST", kAccounts, R"({"metadata": {"name": "a"}})", Json());
  const auto foreign = other.Send("POST", std::string(kAccounts) + "/a/token", "{}", Json());
  EXPECT_EQ(Code(TestServer::Json(*foreign)["status"]["token"].Str(), kPods), 401);
}

TEST_F(IdentityTest, EndsWithItsAccount) {
  const std::string token = Token();
  test_->Send("DELETE", std::string(kAccounts) + "/a");
  EXPECT_EQ(Code(token, kPods), 401);
  Post(kAccounts, R"({"metadata": {"name": "a"}})");
  EXPECT_EQ(Code(token, kPods), 401);  // the account of that name is another one
  EXPECT_EQ(Code(Token(), kPods), 403);
}

TEST_F(IdentityTest, EndsWithItsPod) {
  const std::string uid = CreatePod();
  const std::string bound = fmt::format(
      R"({{"boundObjectRef": {{"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": "{}"}}}})",
      uid);
  const std::string token = Token(bound);
  const auto who =
      Ask("Bearer " + token, "/apis/authentication.k8s.io/v1/selfsubjectreviews", "POST", "{}");
  EXPECT_EQ(
      TestServer::Json(*who)["status"]["userInfo"]["extra"]["authentication.kubernetes.io/pod-uid"]
          .At(0)
          .AsString(),
      uid);
  EXPECT_EQ(test_->Send("DELETE", std::string(kPods) + "/p")->status, 200);
  EXPECT_EQ(Code(token, kPods), 401);
  Post(std::string(kAccounts) + "/a/token", "{\"spec\": " + bound + "}", 404);
  CreatePod();
  EXPECT_EQ(Code(token, kPods), 401);
  const auto writer = Post(std::string(kAccounts) + "/a/token", "{\"spec\": " + bound + "}", 409);
  EXPECT_NE(writer->body.find("does not match the UID in record"), std::string::npos);
}

TEST_F(IdentityTest, AnAudienceIsWhomItIsFor) {
  const std::string token = Token(R"({"audiences": ["vault"]})");
  EXPECT_EQ(Code(token, kPods), 401);
  const auto review = [&](const std::string& audiences) {
    const auto writer =
        Post("/apis/authentication.k8s.io/v1/tokenreviews",
             fmt::format(R"({{"spec": {{"token": "{}", "audiences": {}}}}})", token, audiences));
    return TestServer::Json(*writer)["status"];
  };
  EXPECT_TRUE(review(R"(["x", "vault"])")["authenticated"].AsBool());
  EXPECT_EQ(review(R"(["x", "vault"])")["audiences"], json::List({"vault"}));
  EXPECT_FALSE(review("[]")["authenticated"].AsBool());
  EXPECT_FALSE(review("[\"x\"]")["error"].AsString().empty());
}

TEST_F(IdentityTest, APodsUsualTokenIsExtended) {
  const std::string uid = CreatePod();
  const auto writer = Post(
      std::string(kAccounts) + "/a/token",
      R"({"spec": {"expirationSeconds": 3607, "boundObjectRef": {"kind": "Pod", "name": "p"}}})");
  const json::Value status = TestServer::Json(*writer)["status"];
  EXPECT_EQ(status["expirationTimestamp"].AsString(),
            FormatTime(test_->loop.Now() + seconds(3607)));
  const Result<TokenClaims> claims = ReadToken(*key_, status["token"].AsString());
  ASSERT_TRUE(claims.has_value());
  EXPECT_EQ(claims->pod.uid, uid);
  EXPECT_EQ(claims->warn_after - claims->issued, 3607);
  EXPECT_EQ(claims->expires - claims->issued, 365 * 24 * 3600);
  const Result<TokenClaims> plain = ReadToken(*key_, Token(R"({"expirationSeconds": 3607})"));
  EXPECT_EQ(plain->expires - plain->issued, 3607);
  EXPECT_EQ(plain->warn_after, 0);
}

TEST_F(IdentityTest, TokensOutliveTheServerThatHasTheirKey) {
  const std::string token = Token();
  ServerOptions options;
  options.token_key = key_;
  ApiServer again(test_->loop, *test_->store, std::move(options));
  again.Start([](const Status& status) { EXPECT_TRUE(status.ok()); });
  net::Request request;
  request.method = "GET";
  request.target = kPods;
  request.headers.Add("Authorization", "Bearer " + token);
  auto writer = std::make_shared<FakeWriter>();
  again.Handle(std::move(request), writer);
  test_->loop.RunReady();
  EXPECT_EQ(writer->status, 403);
}

TEST_F(IdentityTest, RemembersABoundedNumberOfTokens) {
  TokenAuthenticator tokens(*test_->store, key_);
  for (size_t i = 0; i < kMaxVerifiedTokens + 10; ++i) {
    EXPECT_TRUE(tokens.Authenticate(Token(), {}, test_->loop.Now()).has_value());
    EXPECT_LE(tokens.remembered(), kMaxVerifiedTokens);
  }
  EXPECT_GT(tokens.remembered(), 0U);
}

TEST(DefaultRolesTest, ARestartAddsWhatIsMissingAndTakesNothing) {
  for (const json::Value& wanted : DefaultRbac()) {
    EXPECT_EQ(ReconcileRbac(wanted, wanted), wanted);
    if (wanted["rules"].empty()) continue;
    const json::Value extra = json::Obj({{"apiGroups", json::List({"x"})},
                                         {"resources", json::List({"y"})},
                                         {"verbs", json::List({"z"})}});
    const json::Value there = wanted.Set("rules", json::List({extra}));
    const json::Value after = ReconcileRbac(there, wanted);
    EXPECT_EQ(after["rules"].At(0), extra);
    EXPECT_TRUE(Missing(ReadRules(after["rules"]), ReadRules(wanted["rules"])).empty());
    const json::Value kept = there.SetPath(
        {"metadata", "annotations", "rbac.authorization.kubernetes.io/autoupdate"}, "false");
    EXPECT_EQ(ReconcileRbac(kept, wanted), kept);
  }
}

}  // namespace
}  // namespace muster::apiserver
