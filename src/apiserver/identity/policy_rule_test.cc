#include "apiserver/identity/policy_rule.h"

#include <gtest/gtest.h>

#include "base/strings.h"

namespace muster::apiserver {
namespace {

RequestInfo Ask(std::string verb, std::string group, std::string resource, std::string name = "") {
  RequestInfo info;
  info.is_resource = true;
  info.verb = std::move(verb);
  info.group = std::move(group);
  info.name = std::move(name);
  const size_t slash = resource.find('/');
  info.resource = resource.substr(0, slash);
  if (slash != std::string::npos) info.subresource = resource.substr(slash + 1);
  return info;
}

RequestInfo AskPath(std::string verb, std::string path) {
  RequestInfo info;
  info.verb = std::move(verb);
  info.path = std::move(path);
  return info;
}

TEST(PolicyRuleTest, AllowsWhatItNames) {
  const PolicyRule rule{{"get", "list"}, {"", "apps"}, {"pods", "deployments/scale"}, {}, {}};
  EXPECT_TRUE(Allows(rule, Ask("get", "", "pods", "x")));
  EXPECT_TRUE(Allows(rule, Ask("list", "apps", "deployments/scale")));
  EXPECT_FALSE(Allows(rule, Ask("delete", "", "pods")));
  EXPECT_FALSE(Allows(rule, Ask("get", "batch", "pods")));
  EXPECT_FALSE(Allows(rule, Ask("get", "", "pods/log")));
  EXPECT_FALSE(Allows(rule, Ask("get", "apps", "deployments")));
  EXPECT_FALSE(Allows(rule, AskPath("get", "/pods")));
}

TEST(PolicyRuleTest, StarsAndNames) {
  const PolicyRule all{{"*"}, {"*"}, {"*"}, {}, {}};
  EXPECT_TRUE(Allows(all, Ask("escalate", "x", "pods/log", "n")));
  EXPECT_FALSE(Allows(all, AskPath("get", "/metrics")));
  const PolicyRule scales{{"*"}, {"*"}, {"*/scale"}, {}, {}};
  EXPECT_TRUE(Allows(scales, Ask("update", "apps", "deployments/scale")));
  EXPECT_FALSE(Allows(scales, Ask("update", "apps", "deployments/status")));
  EXPECT_FALSE(Allows(scales, Ask("update", "apps", "deployments")));
  const PolicyRule one{{"get"}, {""}, {"pods"}, {"a", "b"}, {}};
  EXPECT_TRUE(Allows(one, Ask("get", "", "pods", "b")));
  EXPECT_FALSE(Allows(one, Ask("get", "", "pods", "c")));
  EXPECT_FALSE(Allows(one, Ask("get", "", "pods")));
}

TEST(PolicyRuleTest, Paths) {
  const PolicyRule rule{{"get"}, {}, {}, {}, {"/api/*", "/version"}};
  EXPECT_TRUE(Allows(rule, AskPath("get", "/api/v1")));
  EXPECT_TRUE(Allows(rule, AskPath("get", "/version")));
  EXPECT_FALSE(Allows(rule, AskPath("get", "/api")));
  EXPECT_FALSE(Allows(rule, AskPath("get", "/version/x")));
  EXPECT_FALSE(Allows(rule, AskPath("post", "/version")));
  EXPECT_TRUE(Allows({{"*"}, {}, {}, {}, {"*"}}, AskPath("post", "/x")));
}

std::string Lacks(const std::vector<PolicyRule>& held, const std::vector<PolicyRule>& wanted) {
  std::vector<std::string> texts;
  for (const PolicyRule& rule : Missing(held, wanted)) texts.push_back(Describe(rule));
  return Join(texts, " ");
}

TEST(PolicyRuleTest, MissingIsWhatNoRuleCovers) {
  const std::vector<PolicyRule> wanted = {{{"get", "list"}, {""}, {"pods", "secrets"}, {}, {}}};
  EXPECT_EQ(Lacks(wanted, wanted), "");
  EXPECT_EQ(Lacks({{{"*"}, {"*"}, {"*"}, {}, {}}}, wanted), "");
  EXPECT_EQ(Lacks({{{"get", "list", "watch"}, {""}, {"pods"}, {}, {}}}, wanted),
            R"({APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]})");
  EXPECT_EQ(Lacks({}, {{{"get"}, {""}, {"pods"}, {"a", "b"}, {}}}),
            R"({APIGroups:[""], Resources:["pods"], ResourceNames:["a"], Verbs:["get"]} )"
            R"({APIGroups:[""], Resources:["pods"], ResourceNames:["b"], Verbs:["get"]})");
}

TEST(PolicyRuleTest, APartIsNotTheWhole) {
  const std::vector<PolicyRule> one = {{{"get"}, {""}, {"pods"}, {"a"}, {}}};
  EXPECT_NE(Lacks(one, {{{"get"}, {""}, {"pods"}, {}, {}}}), "");
  EXPECT_NE(Lacks({{{"get"}, {""}, {"pods"}, {}, {}}}, {{{"*"}, {""}, {"pods"}, {}, {}}}), "");
  EXPECT_NE(Lacks({{{"*"}, {""}, {"*"}, {}, {}}}, {{{"*"}, {"*"}, {"*"}, {}, {}}}), "");
  EXPECT_EQ(Lacks({{{"*"}, {""}, {"*/log"}, {}, {}}}, {{{"get"}, {""}, {"pods/log"}, {}, {}}}), "");
  EXPECT_EQ(Lacks({{{"get"}, {}, {}, {}, {"/api/*"}}}, {{{"get"}, {}, {}, {}, {"/api/v1"}}}), "");
  EXPECT_EQ(Lacks({{{"get"}, {}, {}, {}, {"/a"}}}, {{{"get"}, {}, {}, {}, {"/a/*"}}}),
            R"({NonResourceURLs:["/a/*"], Verbs:["get"]})");
  // Resources are no paths.
  EXPECT_NE(Lacks({{{"*"}, {"*"}, {"*"}, {}, {}}}, {{{"get"}, {}, {}, {}, {"/a"}}}), "");
}

}  // namespace
}  // namespace muster::apiserver
