#include "apiserver/authentication.h"

#include <gtest/gtest.h>

#include "apiserver/apiserver_testing.h"

namespace muster::apiserver {
namespace {

// Upstream: only who presents nothing is anonymous.
TEST(Authentication, ACertificateThatDoesNotHoldIsNoAnonymousUser) {
  net::Request request;
  ASSERT_TRUE(Authenticate(request).has_value());
  EXPECT_EQ(Authenticate(request)->name, kAnonymousUser);
  request.peer.refused = "certificate has expired";
  EXPECT_EQ(Authenticate(request).error().reason(), Reason::kUnauthorized);

  TestServer test;
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
