#include "apiserver/authentication.h"

#include <gtest/gtest.h>

#include "apiserver/apiserver_testing.h"
#include "apiserver/identity/token_authenticator.h"

namespace muster::apiserver {
namespace {

// Upstream: only who presents nothing is anonymous.
TEST(Authentication, ACertificateThatDoesNotHoldIsNoAnonymousUser) {
  TestServer test;
  TokenAuthenticator tokens(*test.store, net::SigningKey::Generate());
  const auto authenticate = [&](const net::Request& request) {
    return Authenticate(request, tokens, test.loop.Now());
  };
  net::Request request;
  ASSERT_TRUE(authenticate(request).has_value());
  EXPECT_EQ(authenticate(request)->name, kAnonymousUser);
  request.peer.refused = "certificate has expired";
  EXPECT_EQ(authenticate(request).error().reason(), Reason::kUnauthorized);

  for (const char* target : {"/api/v1/pods", "/healthz", "/version"}) {
    request.method = "GET";
    request.target = target;
    auto writer = std::make_shared<FakeWriter>();
    test.server->Handle(net::Request(request), writer);
    test.loop.RunReady();
    EXPECT_EQ(writer->status, 401) << target;
    const json::Value status = TestServer::Json(*writer);
    EXPECT_EQ(status["reason"].AsString(), "Unauthorized");
    EXPECT_EQ(status["message"].AsString(), "Unauthorized");
  }
}

}  // namespace
}  // namespace muster::apiserver
