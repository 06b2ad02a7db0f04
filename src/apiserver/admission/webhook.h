// src/apiserver/admission/webhook.h
//
// Webhook: one webhook of a MutatingWebhookConfiguration or a ValidatingWebhookConfiguration, read
// once, and what its rules say of a request.
//
// Life cycle: an immutable value; a request that is under way holds the webhooks that it asks.
// Thread:     any (pure).

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "json/value.h"
#include "schema/label_selector.h"

namespace muster::apiserver {

// Bits, because a rule names several.
enum class Operation : uint8_t { kCreate = 1, kUpdate = 2, kDelete = 4, kConnect = 8 };
std::string_view OperationName(Operation operation);  // "CREATE"

// What a request is about, as rules see it.
struct RuleSubject {
  Operation operation = Operation::kCreate;
  std::string_view group, version, resource, subresource;
  bool namespaced = false;  // the object lies in a namespace; a Namespace itself does not
};

struct WebhookRule {
  enum class Scope : uint8_t { kAll, kCluster, kNamespaced };

  uint8_t operations = 0;
  std::vector<std::string> groups, versions;
  std::vector<std::string> resources;  // "pods", "pods/status", "pods/*", "*/scale", "*", "*/*"
  Scope scope = Scope::kAll;

  bool Fits(const RuleSubject& subject) const;
};

struct WebhookService {
  std::string ns, name, path;
  int64_t port = 0;
};

struct Webhook {
  std::string configuration, name;
  std::string url;         // "": reached by the service
  WebhookService service;  // REQUIRES: url is ""
  std::string ca_pem;      // "": the system's authorities
  std::vector<WebhookRule> rules;
  schema::LabelSelector namespaces, objects;
  Duration timeout{};
  std::string review_version;     // "v1" or "v1beta1"
  bool fails_open = false;        // failurePolicy Ignore
  bool equivalent = true;         // matchPolicy: other versions of the resource count
  bool asked_again = false;       // reinvocationPolicy IfNeeded
  bool has_side_effects = false;  // may not be asked about dry runs

  bool Fits(const RuleSubject& subject) const;
};
using WebhookPtr = std::shared_ptr<const Webhook>;

// In the order of the list. REQUIRES: a configuration that was validated.
std::vector<WebhookPtr> ReadWebhooks(const json::Value& configuration);

}  // namespace muster::apiserver
