// Webhook configurations. Source: k8s.io/kubernetes pkg/apis/admissionregistration/v1/defaults.go.

#include "schema/defaulting/edit.h"
#include "schema/defaulting/kind_defaults.h"

namespace muster::schema {
namespace {

using json::Value;

Value DefaultWebhook(Value webhook) {
  SetIfAbsent(webhook, "failurePolicy", "Fail");
  SetIfAbsent(webhook, "matchPolicy", "Equivalent");
  SetIfAbsent(webhook, "namespaceSelector", json::Obj());
  SetIfAbsent(webhook, "objectSelector", json::Obj());
  SetIfAbsent(webhook, "timeoutSeconds", 10);
  EditItems(webhook, "rules", [](Value rule) {
    SetIfAbsent(rule, "scope", "*");
    return rule;
  });
  EditMember(webhook, "clientConfig", [](Value config) {
    EditMember(config, "service", [](Value service) {
      SetIfAbsent(service, "port", 443);
      return service;
    });
    return config;
  });
  return webhook;
}

}  // namespace

Value DefaultValidatingWebhookConfiguration(Value configuration) {
  EditItems(configuration, "webhooks", DefaultWebhook);
  return configuration;
}

Value DefaultMutatingWebhookConfiguration(Value configuration) {
  EditItems(configuration, "webhooks", [](Value webhook) {
    webhook = DefaultWebhook(std::move(webhook));
    SetIfAbsent(webhook, "reinvocationPolicy", "Never");
    return webhook;
  });
  return configuration;
}

}  // namespace muster::schema
