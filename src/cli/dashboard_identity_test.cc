#include "cli/dashboard_identity.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "cli/cli_testing.h"

namespace muster::cli {
namespace {

constexpr const char* kAccounts = "/api/v1/serviceaccounts";
constexpr const char* kRoles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
constexpr const char* kBindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";

class DashboardIdentityTest : public testing::Test {
 protected:
  FakeCluster cluster_;
  Session session_{cluster_.loop, cluster_.pump, cluster_.transport, "default"};
};

TEST_F(DashboardIdentityTest, MakesAnAccountThatMayOnlyLook) {
  ASSERT_TRUE(EnsureDashboardAccount(session_).ok());
  EXPECT_NE(cluster_.api.Find(kAccounts, "kube-system", "muster-dashboard"), nullptr);
  const json::Value* role = cluster_.api.Find(kRoles, "", "muster-dashboard");
  ASSERT_NE(role, nullptr);
  for (const json::Value& rule : (*role)["rules"].items()) {
    for (const std::string& verb : json::ToStrings(rule["verbs"]))
      EXPECT_TRUE(verb == "get" || verb == "list" || verb == "watch") << verb;
    const std::vector<std::string> resources = json::ToStrings(rule["resources"]);
    EXPECT_EQ(std::ranges::count(resources, "secrets"), 0);
    const std::vector<std::string> groups = json::ToStrings(rule["apiGroups"]);
    const bool all_of_core =
        std::ranges::count(groups, "") > 0 && std::ranges::count(resources, "*") > 0;
    EXPECT_FALSE(all_of_core || std::ranges::count(groups, "*") > 0);
  }
  const json::Value* view = cluster_.api.Find(kBindings, "", "muster-dashboard-view");
  ASSERT_NE(view, nullptr);
  EXPECT_EQ((*view)["roleRef"]["name"].AsString(), "view");
  EXPECT_EQ((*view)["subjects"].items().at(0)["name"].AsString(), "muster-dashboard");
}

TEST_F(DashboardIdentityTest, LeavesAloneWhatIsThere) {
  ASSERT_TRUE(EnsureDashboardAccount(session_).ok());
  cluster_.api.requests.clear();
  ASSERT_TRUE(EnsureDashboardAccount(session_).ok());
  EXPECT_EQ(std::ranges::count_if(cluster_.api.requests,
                                  [](const std::string& r) { return r.starts_with("POST"); }),
            0);
}

TEST_F(DashboardIdentityTest, SaysWhatMayNotBeDone) {
  cluster_.api.before_handle = [](const net::Request& request,
                                  const net::ResponseWriterPtr& writer) {
    if (request.method != "POST") return true;
    client::FakeApi::SendError(*writer, 403, "Forbidden", "serviceaccounts is forbidden");
    return false;
  };
  const Status status = EnsureDashboardAccount(session_);
  EXPECT_EQ(status.reason(), Reason::kForbidden);
  EXPECT_EQ(status.message(), "serviceaccounts is forbidden");
}

TEST_F(DashboardIdentityTest, AsksForATokenThatEnds) {
  json::Value asked;
  cluster_.api.before_handle = [&](const net::Request& request,
                                   const net::ResponseWriterPtr& writer) {
    if (!request.target.starts_with("/api/v1/namespaces/team/serviceaccounts/viewer/token"))
      return true;
    asked = client::FakeApi::BodyOf(request);
    net::Response response{.status = 201};
    response.value = Yaml("{status: {token: t, expirationTimestamp: '2026-01-01T08:00:00Z'}}");
    writer->Send(std::move(response));
    return false;
  };
  const Result<DashboardToken> token = RequestDashboardToken(session_, "team/viewer", hours(8));
  ASSERT_TRUE(token.has_value()) << token.error().ToString();
  EXPECT_EQ(token->token, "t");
  EXPECT_EQ(token->expires, "2026-01-01T08:00:00Z");
  EXPECT_EQ(asked["spec"]["expirationSeconds"].AsInt(), 28800);
}

TEST_F(DashboardIdentityTest, RefusesWhatIsNoAccount) {
  for (const char* account : {"viewer", "/viewer", "team/", ""})
    EXPECT_EQ(RequestDashboardToken(session_, account, hours(1)).error().reason(),
              Reason::kInvalid);
}

}  // namespace
}  // namespace muster::cli
