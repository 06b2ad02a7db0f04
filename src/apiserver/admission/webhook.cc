#include "apiserver/admission/webhook.h"

#include <algorithm>
#include <array>

#include "base/strings.h"

namespace muster::apiserver {
namespace {

constexpr std::array<std::pair<Operation, std::string_view>, 4> kOperations = {{
    {Operation::kCreate, "CREATE"},
    {Operation::kUpdate, "UPDATE"},
    {Operation::kDelete, "DELETE"},
    {Operation::kConnect, "CONNECT"},
}};

bool Names(const std::vector<std::string>& list, std::string_view text) {
  return std::ranges::any_of(list,
                             [&](const std::string& one) { return one == "*" || one == text; });
}

bool FitsResource(std::string_view pattern, const RuleSubject& subject) {
  const size_t slash = pattern.find('/');
  const std::string_view resource = pattern.substr(0, slash);
  const std::string_view sub =
      slash == std::string_view::npos ? std::string_view() : pattern.substr(slash + 1);
  return (resource == "*" || resource == subject.resource) &&
         (sub == "*" || sub == subject.subresource);
}

WebhookRule ReadRule(const json::Value& from) {
  WebhookRule rule;
  for (const json::Value& item : from["operations"].items()) {
    for (const auto& [operation, name] : kOperations) {
      if (item.AsString() == name || item.AsString() == "*")
        rule.operations |= static_cast<uint8_t>(operation);
    }
  }
  rule.groups = json::ToStrings(from["apiGroups"]);
  rule.versions = json::ToStrings(from["apiVersions"]);
  rule.resources = json::ToStrings(from["resources"]);
  const std::string_view scope = from["scope"].AsString();
  if (scope == "Cluster") rule.scope = WebhookRule::Scope::kCluster;
  if (scope == "Namespaced") rule.scope = WebhookRule::Scope::kNamespaced;
  return rule;
}

// The first one that both sides know.
std::string ReviewVersion(const json::Value& versions) {
  for (const json::Value& version : versions.items()) {
    if (version.AsString() == "v1" || version.AsString() == "v1beta1") return version.Str();
  }
  return "v1";
}

// Validation leaves no selector that cannot be read.
schema::LabelSelector SelectorOf(const json::Value& from) {
  if (from.IsNull()) return {};
  Result<schema::LabelSelector> selector = schema::LabelSelector::FromJson(from);
  return selector ? std::move(*selector) : schema::LabelSelector::Nothing();
}

WebhookPtr ReadWebhook(const std::string& configuration, const json::Value& from) {
  auto webhook = std::make_shared<Webhook>();
  webhook->configuration = configuration;
  webhook->name = from["name"].Str();
  const json::Value& config = from["clientConfig"];
  webhook->url = config["url"].Str();
  const json::Value& service = config["service"];
  webhook->service = {service["namespace"].Str(), service["name"].Str(), service["path"].Str(),
                      service["port"].AsInt()};
  webhook->ca_pem = Base64Decode(config["caBundle"].AsString()).value_or("");
  for (const json::Value& rule : from["rules"].items()) webhook->rules.push_back(ReadRule(rule));
  webhook->namespaces = SelectorOf(from["namespaceSelector"]);
  webhook->objects = SelectorOf(from["objectSelector"]);
  webhook->timeout = seconds(from["timeoutSeconds"].AsInt());
  webhook->review_version = ReviewVersion(from["admissionReviewVersions"]);
  webhook->fails_open = from["failurePolicy"].AsString() == "Ignore";
  webhook->equivalent = from["matchPolicy"].AsString() != "Exact";
  webhook->asked_again = from["reinvocationPolicy"].AsString() == "IfNeeded";
  const std::string_view effects = from["sideEffects"].AsString();
  webhook->has_side_effects = effects != "None" && effects != "NoneOnDryRun";
  return webhook;
}

}  // namespace

std::string_view OperationName(Operation operation) {
  for (const auto& [one, name] : kOperations)
    if (one == operation) return name;
  return "";
}

bool WebhookRule::Fits(const RuleSubject& subject) const {
  if (scope == Scope::kNamespaced && !subject.namespaced) return false;
  if (scope == Scope::kCluster && subject.namespaced) return false;
  return (operations & static_cast<uint8_t>(subject.operation)) != 0 &&
         Names(groups, subject.group) && Names(versions, subject.version) &&
         std::ranges::any_of(
             resources, [&](const std::string& pattern) { return FitsResource(pattern, subject); });
}

bool Webhook::Fits(const RuleSubject& subject) const {
  return std::ranges::any_of(rules, [&](const WebhookRule& rule) { return rule.Fits(subject); });
}

std::vector<WebhookPtr> ReadWebhooks(const json::Value& configuration) {
  std::vector<WebhookPtr> webhooks;
  const std::string name = configuration["metadata"]["name"].Str();
  for (const json::Value& webhook : configuration["webhooks"].items())
    webhooks.push_back(ReadWebhook(name, webhook));
  return webhooks;
}

}  // namespace muster::apiserver
