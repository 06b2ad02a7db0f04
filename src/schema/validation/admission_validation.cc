// Webhook configurations: k8s.io/kubernetes pkg/apis/admissionregistration/validation, and the
// words about URLs of k8s.io/apiserver pkg/util/webhook.

#include <set>

#include "base/strings.h"
#include "schema/validation/kind_validation.h"

namespace muster::schema {
namespace {

using json::Value;

constexpr size_t kMinNameSegments = 3;
constexpr int64_t kMaxTimeoutSeconds = 30;
constexpr std::string_view kUrlForm = "; desired format: https://host[/path]";

bool Contains(const Value& list, std::string_view text) {
  for (const Value& item : list.items())
    if (item.AsString() == text) return true;
  return false;
}

void ValidateWebhookName(const Value& name, const Path& path, FieldErrors& errors) {
  if (name.AsString().empty()) return errors.Required(path);
  Problems problems;
  CheckDns1123Subdomain(name.AsString(), problems);
  if (!problems.empty()) return errors.Invalid(path, name, Join(problems, ","));
  if (Split(name.AsString(), '.').size() < kMinNameSegments) {
    errors.Invalid(path, name, "should be a domain with at least three segments separated by dots");
  }
}

// A list of which "*" must be the only item.
void ValidateWildcard(const Value& list, const Path& path, std::string_view what,
                      FieldErrors& errors) {
  if (list.empty()) return errors.Required(path);
  if (list.size() > 1 && Contains(list, "*")) {
    errors.Invalid(path, list, fmt::format("if '*' is present, must not specify other {}", what));
  }
}

void ValidateResources(const Value& resources, const Path& path, FieldErrors& errors) {
  if (resources.empty()) errors.Required(path);
  std::set<std::string_view> whole, everywhere;  // "x/*" and "*/x"
  bool without_subresource = false;
  for (size_t i = 0; i < resources.size(); ++i) {
    const std::string_view text = resources.At(i).AsString();
    const Path place = path.Index(i);
    if (text.empty()) {
      errors.Required(place);
      continue;
    }
    const size_t slash = text.find('/');
    if (slash == std::string_view::npos) {
      without_subresource = text != "*";
      continue;
    }
    const std::string_view resource = text.substr(0, slash), sub = text.substr(slash + 1);
    if (whole.contains(resource)) {
      errors.Invalid(place, resources.At(i),
                     fmt::format("if '{}/*' is present, must not specify {}", resource, text));
    }
    if (everywhere.contains(sub)) {
      errors.Invalid(place, resources.At(i),
                     fmt::format("if '*/{}' is present, must not specify {}", sub, text));
    }
    if (sub == "*") whole.insert(resource);
    if (resource == "*") everywhere.insert(sub);
  }
  if (resources.size() > 1 && Contains(resources, "*/*"))
    errors.Invalid(path, resources, "if '*/*' is present, must not specify other resources");
  if (Contains(resources, "*") && without_subresource) {
    errors.Invalid(path, resources,
                   "if '*' is present, must not specify other resources without subresources");
  }
}

void ValidateRule(const Value& rule, const Path& path, FieldErrors& errors) {
  ValidateWildcard(rule["operations"], path.Child("operations"), "operations", errors);
  const Path operations = path.Child("operations");
  for (size_t i = 0; i < rule["operations"].size(); ++i) {
    errors.OneOf(operations.Index(i), rule["operations"].At(i),
                 {"*", "CONNECT", "CREATE", "DELETE", "UPDATE"});
  }
  ValidateWildcard(rule["apiGroups"], path.Child("apiGroups"), "API groups", errors);
  ValidateWildcard(rule["apiVersions"], path.Child("apiVersions"), "API versions", errors);
  const Path versions = path.Child("apiVersions");
  for (size_t i = 0; i < rule["apiVersions"].size(); ++i) {
    if (rule["apiVersions"].At(i).AsString().empty()) errors.Required(versions.Index(i));
  }
  ValidateResources(rule["resources"], path.Child("resources"), errors);
  if (!rule["scope"].IsNull())
    errors.OneOf(path.Child("scope"), rule["scope"], {"*", "Cluster", "Namespaced"});
}

void ValidateUrl(const Value& url, const Path& path, FieldErrors& errors) {
  std::string_view rest = url.AsString();
  const size_t colon = rest.find("://");
  const std::string_view scheme =
      colon == std::string_view::npos ? std::string_view() : rest.substr(0, colon);
  if (scheme != "https")
    errors.Invalid(path, scheme, fmt::format("'https' is the only allowed URL scheme{}", kUrlForm));
  rest = colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 3);
  std::string_view host = rest.substr(0, rest.find_first_of("/?#"));
  const size_t at = host.rfind('@');
  const std::string_view user = at == std::string_view::npos ? "" : host.substr(0, at);
  if (at != std::string_view::npos) host = host.substr(at + 1);
  if (host.empty()) errors.Invalid(path, host, fmt::format("host must be provided{}", kUrlForm));
  if (at != std::string_view::npos)
    errors.Invalid(path, user, "user information is not permitted in the URL");
  const size_t hash = rest.find('#');
  if (hash != std::string_view::npos && hash + 1 < rest.size()) {
    errors.Invalid(path, rest.substr(hash + 1), "fragments are not permitted in the URL");
  }
  rest = rest.substr(0, hash);
  const size_t question = rest.find('?');
  if (question != std::string_view::npos && question + 1 < rest.size()) {
    errors.Invalid(path, rest.substr(question + 1),
                   "query parameters are not permitted in the URL");
  }
}

void ValidateUrlPath(const Value& value, const Path& path, FieldErrors& errors) {
  std::string_view text = value.AsString();
  if (text.empty() || text == "/") return;
  if (text == "//") return errors.Invalid(path, value, "segment[0] may not be empty");
  if (!text.starts_with('/')) errors.Invalid(path, value, "must start with a '/'");
  text.remove_prefix(1);
  if (text.ends_with('/')) text.remove_suffix(1);
  const std::vector<std::string_view> steps = Split(text, '/');
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].empty()) {
      errors.Invalid(path, value, fmt::format("segment[{}] may not be empty", i));
      continue;
    }
    Problems problems;
    CheckDns1123Subdomain(steps[i], problems);
    for (const std::string& problem : problems)
      errors.Invalid(path, value, fmt::format("segment[{}]: {}", i, problem));
  }
}

void ValidateServiceReference(const Value& service, const Path& path, FieldErrors& errors) {
  if (service["name"].AsString().empty())
    errors.Required(path.Child("name"), "service name is required");
  if (service["namespace"].AsString().empty())
    errors.Required(path.Child("namespace"), "service namespace is required");
  const int64_t port = service["port"].AsInt();
  if (port < 1 || port > 65535) {
    errors.Invalid(path.Child("port"), service["port"],
                   "port is not valid: must be between 1 and 65535, inclusive");
  }
  ValidateUrlPath(service["path"], path.Child("path"), errors);
}

void ValidateClientConfig(const Value& config, const Path& path, FieldErrors& errors) {
  const Value& url = config["url"];
  const Value& service = config["service"];
  if (url.IsNull() == service.IsNull())
    return errors.Required(path, "exactly one of url or service is required");
  if (!url.IsNull()) return ValidateUrl(url, path.Child("url"), errors);
  ValidateServiceReference(service, path.Child("service"), errors);
}

void ValidateReviewVersions(const Value& versions, const Path& path, FieldErrors& errors) {
  if (versions.empty()) return errors.Required(path, "must specify one of v1, v1beta1");
  std::set<std::string_view> seen;
  for (size_t i = 0; i < versions.size(); ++i) {
    const Path place = path.Index(i);
    if (!seen.insert(versions.At(i).AsString()).second) {
      errors.Invalid(place, versions.At(i), "duplicate version");
      continue;
    }
    errors.Check(CheckDns1035Label, place, versions.At(i));
  }
  if (!seen.contains("v1") && !seen.contains("v1beta1"))
    errors.Invalid(path, versions, "must include at least one of v1, v1beta1");
}

void ValidatePolicies(const Value& webhook, const Path& path, FieldErrors& errors) {
  errors.OneOf(path.Child("failurePolicy"), webhook["failurePolicy"], {"Fail", "Ignore"});
  errors.OneOf(path.Child("matchPolicy"), webhook["matchPolicy"], {"Equivalent", "Exact"});
  const Value& effects = webhook["sideEffects"];
  if (effects.IsNull()) {
    errors.Required(path.Child("sideEffects"), "must specify one of None, NoneOnDryRun");
  } else {
    errors.OneOf(path.Child("sideEffects"), effects, {"None", "NoneOnDryRun"});
  }
  const int64_t timeout = webhook["timeoutSeconds"].AsInt();
  if (timeout < 1 || timeout > kMaxTimeoutSeconds) {
    errors.Invalid(path.Child("timeoutSeconds"), webhook["timeoutSeconds"],
                   "the timeout value must be between 1 and 30 seconds");
  }
}

void ValidateWebhook(const Value& webhook, bool mutating, const Path& path, FieldErrors& errors) {
  ValidateWebhookName(webhook["name"], path.Child("name"), errors);
  const Path rules = path.Child("rules");
  for (size_t i = 0; i < webhook["rules"].size(); ++i)
    ValidateRule(webhook["rules"].At(i), rules.Index(i), errors);
  ValidatePolicies(webhook, path, errors);
  ValidateLabelSelector(webhook["namespaceSelector"], path.Child("namespaceSelector"), errors);
  ValidateLabelSelector(webhook["objectSelector"], path.Child("objectSelector"), errors);
  if (mutating) {
    errors.OneOf(path.Child("reinvocationPolicy"), webhook["reinvocationPolicy"],
                 {"IfNeeded", "Never"});
  }
  ValidateClientConfig(webhook["clientConfig"], path.Child("clientConfig"), errors);
  // Without them the webhook would be asked about more than was meant, and might refuse it.
  if (!webhook["matchConditions"].empty()) {
    errors.Forbidden(
        path.Child("matchConditions"),
        "expressions in the Common Expression Language are not evaluated yet: use "
        "rules, namespaceSelector and objectSelector, and leave the rest to the webhook");
  }
  ValidateReviewVersions(webhook["admissionReviewVersions"], path.Child("admissionReviewVersions"),
                         errors);
}

void ValidateWebhooks(const Value& configuration, bool mutating, FieldErrors& errors) {
  const Value& webhooks = configuration["webhooks"];
  const Path path("webhooks");
  std::set<std::string_view> names;
  for (size_t i = 0; i < webhooks.size(); ++i) {
    const Path place = path.Index(i);
    ValidateWebhook(webhooks.At(i), mutating, place, errors);
    const Value& name = webhooks.At(i)["name"];
    if (!name.AsString().empty() && !names.insert(name.AsString()).second)
      errors.Duplicate(place.Child("name"), name);
  }
}

}  // namespace

void ValidateMutatingWebhookConfiguration(const Value& configuration, FieldErrors& errors) {
  ValidateWebhooks(configuration, true, errors);
}

void ValidateValidatingWebhookConfiguration(const Value& configuration, FieldErrors& errors) {
  ValidateWebhooks(configuration, false, errors);
}

}  // namespace muster::schema
