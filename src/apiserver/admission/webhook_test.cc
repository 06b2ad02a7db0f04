#include "apiserver/admission/webhook.h"

#include <gtest/gtest.h>

#include "json/parse.h"

namespace muster::apiserver {
namespace {

WebhookRule Rule(const std::string& resources, const std::string& more = "") {
  const auto configuration = json::Parse(
      R"({"metadata":{"name":"c"},"webhooks":[{"name":"w","rules":[{"operations":["CREATE"],)"
      R"("apiGroups":["apps"],"apiVersions":["v1"],"resources":)" +
      resources + more + "}]}]}");
  EXPECT_TRUE(configuration.has_value());
  return ReadWebhooks(*configuration).at(0)->rules.at(0);
}

RuleSubject Subject(std::string_view resource, std::string_view sub = "") {
  return {Operation::kCreate, "apps", "v1", resource, sub, true};
}

TEST(WebhookRuleTest, ResourcesAndTheirSubresources) {
  struct {
    const char* pattern;
    bool deployments, scale, replicasets, status;
  } const rows[] = {
      {R"(["deployments"])", true, false, false, false},
      {R"(["deployments/scale"])", false, true, false, false},
      {R"(["deployments/*"])", true, true, false, false},
      {R"(["*"])", true, false, true, false},
      {R"(["*/*"])", true, true, true, true},
      {R"(["*/status"])", false, false, false, true},
      {R"(["deployments","*/status"])", true, false, false, true},
  };
  for (const auto& row : rows) {
    const WebhookRule rule = Rule(row.pattern);
    EXPECT_EQ(rule.Fits(Subject("deployments")), row.deployments) << row.pattern;
    EXPECT_EQ(rule.Fits(Subject("deployments", "scale")), row.scale) << row.pattern;
    EXPECT_EQ(rule.Fits(Subject("replicasets")), row.replicasets) << row.pattern;
    EXPECT_EQ(rule.Fits(Subject("replicasets", "status")), row.status) << row.pattern;
  }
}

TEST(WebhookRuleTest, GroupsVersionsAndOperations) {
  const WebhookRule rule = Rule(R"(["*"])");
  RuleSubject subject = Subject("deployments");
  subject.group = "batch";
  EXPECT_FALSE(rule.Fits(subject));
  subject = Subject("deployments");
  subject.version = "v2";
  EXPECT_FALSE(rule.Fits(subject));
  subject = Subject("deployments");
  subject.operation = Operation::kDelete;
  EXPECT_FALSE(rule.Fits(subject));

  const auto all = json::Parse(
      R"({"webhooks":[{"rules":[{"operations":["*"],"apiGroups":["*"],"apiVersions":["*"],)"
      R"("resources":["*"],"scope":"*"}]}]})");
  const WebhookRule any = ReadWebhooks(*all).at(0)->rules.at(0);
  for (const Operation operation :
       {Operation::kCreate, Operation::kUpdate, Operation::kDelete, Operation::kConnect}) {
    EXPECT_TRUE(any.Fits({operation, "x", "v9", "things", "", false})) << OperationName(operation);
  }
}

TEST(WebhookRuleTest, Scopes) {
  const WebhookRule cluster = Rule(R"(["*"])", R"(,"scope":"Cluster")");
  const WebhookRule namespaced = Rule(R"(["*"])", R"(,"scope":"Namespaced")");
  RuleSubject subject = Subject("deployments");
  EXPECT_FALSE(cluster.Fits(subject));
  EXPECT_TRUE(namespaced.Fits(subject));
  subject.namespaced = false;
  EXPECT_TRUE(cluster.Fits(subject));
  EXPECT_FALSE(namespaced.Fits(subject));
}

TEST(WebhookTest, IsReadOnce) {
  const auto configuration = json::Parse(
      R"({"metadata":{"name":"c"},"webhooks":[{"name":"a.b.c","failurePolicy":"Ignore",)"
      R"("matchPolicy":"Exact","reinvocationPolicy":"IfNeeded","sideEffects":"Some",)"
      R"("timeoutSeconds":7,"admissionReviewVersions":["v2","v1beta1","v1"],)"
      R"("clientConfig":{"caBundle":"cGVt","service":{"namespace":"n","name":"s","port":8443}}},)"
      R"({"name":"d.e.f","failurePolicy":"Fail","sideEffects":"None",)"
      R"("clientConfig":{"url":"https://h/p"},"namespaceSelector":{},"objectSelector":{}}]})");
  const std::vector<WebhookPtr> webhooks = ReadWebhooks(*configuration);
  ASSERT_EQ(webhooks.size(), 2u);
  const Webhook& first = *webhooks[0];
  EXPECT_EQ(first.configuration, "c");
  EXPECT_TRUE(first.fails_open && first.asked_again && first.has_side_effects);
  EXPECT_FALSE(first.equivalent);
  EXPECT_EQ(first.timeout, seconds(7));
  EXPECT_EQ(first.review_version, "v1beta1");
  EXPECT_EQ(first.ca_pem, "pem");
  EXPECT_EQ(first.service.port, 8443);
  const Webhook& second = *webhooks[1];
  EXPECT_FALSE(second.fails_open || second.asked_again || second.has_side_effects);
  EXPECT_TRUE(second.equivalent && second.namespaces.empty() && second.objects.empty());
  EXPECT_EQ(second.url, "https://h/p");
}

}  // namespace
}  // namespace muster::apiserver
