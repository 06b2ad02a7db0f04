// ResourceQuota and LimitRange: k8s.io/kubernetes pkg/apis/core/validation.

#include <algorithm>
#include <array>
#include <set>

#include "schema/quantity_syntax.h"
#include "schema/validation/kind_validation.h"
#include "schema/validation/pod_parts.h"

namespace muster::schema {
namespace {

using json::Value;

constexpr std::array<std::string_view, 9> kCounted = {
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
};
constexpr std::array<std::string_view, 6> kPodCompute = {
    "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"};
constexpr std::array<std::string_view, 4> kMoreForQuota = {"ephemeral-storage", "requests.storage",
                                                           "requests.ephemeral-storage",
                                                           "limits.ephemeral-storage"};
constexpr std::array<std::string_view, 6> kScopes = {"Terminating",   "NotTerminating",
                                                     "BestEffort",    "NotBestEffort",
                                                     "PriorityClass", "CrossNamespacePodAffinity"};

template <size_t N>
bool IsIn(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool IsForQuota(std::string_view name) {
  return IsIn(kCounted, name) || IsIn(kPodCompute, name) || IsIn(kMoreForQuota, name) ||
         name.starts_with("hugepages-") || name.starts_with("requests.hugepages-");
}

void ValidateQuotaAmounts(const Value& amounts, const Path& path, FieldErrors& errors) {
  for (const auto& [name, value] : amounts.members()) {
    const Path place = path.Key(name);
    ValidateResourceName(name, place, errors);
    if (name.find('/') == std::string::npos && !IsForQuota(name))
      errors.Invalid(place, name, "must be a standard resource for quota");
    ValidateAmount(name, value, place, errors);
    const Result<Amount> amount = AmountFromJson(value);
    if (name != "pods" && IsIn(kCounted, name) && amount && !amount->IsWhole())
      errors.Invalid(place, amount->Canonical(), "must be an integer");
  }
}

// Whether some amount that the quota limits is none of a pod of that scope.
bool IsMisapplied(std::string_view scope, const Value& hard) {
  return std::ranges::any_of(hard.members(), [&](const auto& member) {
    const std::string_view name = member.first;
    const bool fits = name == "pods" || (scope != "BestEffort" && IsIn(kPodCompute, name));
    return IsForQuota(name) && IsIn(kScopes, scope) && !fits;
  });
}

bool Conflict(const std::set<std::string>& scopes) {
  return (scopes.contains("BestEffort") && scopes.contains("NotBestEffort")) ||
         (scopes.contains("Terminating") && scopes.contains("NotTerminating"));
}

void ValidateScopes(const Value& spec, const Path& path, FieldErrors& errors) {
  std::set<std::string> seen;
  for (const Value& scope : spec["scopes"].items()) {
    if (!IsIn(kScopes, scope.AsString())) errors.Invalid(path, spec["scopes"], "unsupported scope");
    if (IsMisapplied(scope.AsString(), spec["hard"]))
      errors.Invalid(path, spec["scopes"], "unsupported scope applied to resource");
    seen.insert(scope.Str());
  }
  if (Conflict(seen)) errors.Invalid(path, spec["scopes"], "conflicting scopes");
}

void ValidateScopeRequirement(const Value& requirement, const Path& path, FieldErrors& errors) {
  const Value& scope = requirement["scopeName"];
  const Value op(requirement["operator"].AsString());
  const Value& values = requirement["values"];
  if (!IsIn(kScopes, scope.AsString()))
    errors.Invalid(path.Child("scopeName"), scope.AsString(), "unsupported scope");
  if (IsIn(kScopes, scope.AsString()) && scope.AsString() != "PriorityClass" &&
      op.AsString() != "Exists") {
    errors.Invalid(path.Child("operator"), op,
                   "must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, "
                   "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
                   "ResourceQuotaScopeNotBestEffort or "
                   "ResourceQuotaScopeCrossNamespacePodAffinity");
  }
  if (op.AsString() == "In" || op.AsString() == "NotIn") {
    if (values.empty()) {
      errors.Required(path.Child("values"),
                      "must be at least one value when `operator` is 'In' or 'NotIn' for scope "
                      "selector");
    }
  } else if (op.AsString() == "Exists" || op.AsString() == "DoesNotExist") {
    if (!values.empty()) {
      errors.Invalid(path.Child("values"), values,
                     "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope "
                     "selector");
    }
  } else {
    errors.Invalid(path.Child("operator"), op, "not a valid selector operator");
  }
}

void ValidateScopeSelector(const Value& spec, const Path& path, FieldErrors& errors) {
  const Path list = path.Child("matchExpressions");  // upstream leaves the index out
  std::set<std::string> seen;
  for (const Value& requirement : spec["scopeSelector"]["matchExpressions"].items()) {
    ValidateScopeRequirement(requirement, list, errors);
    if (IsMisapplied(requirement["scopeName"].AsString(), spec["hard"]))
      errors.Invalid(list, spec["scopeSelector"], "unsupported scope applied to resource");
    seen.insert(requirement["scopeName"].Str());
  }
  if (Conflict(seen)) errors.Invalid(list, spec["scopes"], "conflicting scopes");
}

// One list of a limit ("max") and the amount that it has for a resource.
struct Bound {
  explicit Bound(const Value& value) : present(!value.IsNull()) {
    if (const Result<Amount> parsed = AmountFromJson(value)) amount = *parsed;
    text = amount.Canonical();
  }
  bool present;
  Amount amount;
  std::string text;
};

void ValidateRatio(const Value& limit, const std::string& name, const Path& path,
                   FieldErrors& errors) {
  const Bound ratio(limit["maxLimitRequestRatio"][name]);
  if (!ratio.present) return;
  const Path list = path.Child("maxLimitRequestRatio");
  const Bound least(limit["min"][name]), most(limit["max"][name]);
  if (ratio.amount.nano < 1'000'000'000)
    errors.Invalid(list.Key(name), ratio.text, fmt::format("ratio {} is less than 1", ratio.text));
  if (!least.present || !most.present) return;
  const double possible =
      static_cast<double>(most.amount.nano) / static_cast<double>(least.amount.nano);
  if (static_cast<double>(ratio.amount.nano) / 1e9 > possible) {
    errors.Invalid(list.Key(name), ratio.text,
                   fmt::format("ratio {} is greater than max/min = {:f}", ratio.text, possible));
  }
}

// min <= defaultRequest <= default <= max.
void ValidateBounds(const Value& limit, const std::string& name, const Path& path,
                    FieldErrors& errors) {
  const Bound least(limit["min"][name]), most(limit["max"][name]);
  const Bound usual(limit["default"][name]), asked(limit["defaultRequest"][name]);
  const auto check = [&](const Bound& low, std::string_view low_name, const Bound& high,
                         std::string_view high_name, const char* key, const Bound& shown) {
    if (!low.present || !high.present || low.amount <= high.amount) return;
    const Path list = path.Child(key);
    errors.Invalid(list.Key(name), shown.text,
                   fmt::format("{} value {} is greater than {} value {}", low_name, low.text,
                               high_name, high.text));
  };
  check(least, "min", most, "max", "min", least);
  check(least, "min", asked, "default request", "defaultRequest", asked);
  check(asked, "default request", most, "max", "defaultRequest", asked);
  check(asked, "default request", usual, "default limit", "defaultRequest", asked);
  check(least, "min", usual, "default", "default", least);
  check(usual, "default", most, "max", "default", most);
  const bool overcommits = IsNativeResource(name) && !name.starts_with("hugepages-");
  if (!overcommits && usual.present && asked.present && !(usual.amount == asked.amount)) {
    const Path list = path.Child("defaultRequest");
    errors.Invalid(list.Key(name), asked.text,
                   fmt::format("default value {} must equal to defaultRequest value {} in {}",
                               usual.text, asked.text, name));
  }
}

void ValidateLimitType(const Value& type, const Path& path, FieldErrors& errors) {
  if (!errors.Check(CheckQualifiedName, path, type.AsString())) return;
  constexpr std::array<std::string_view, 3> kTypes = {"Pod", "Container", "PersistentVolumeClaim"};
  if (type.AsString().find('/') == std::string_view::npos && !IsIn(kTypes, type.AsString()))
    errors.Invalid(path, type, "must be a standard limit type or fully qualified");
}

void ValidateLimit(const Value& limit, const Path& path, FieldErrors& errors) {
  const std::string_view type = limit["type"].AsString();
  ValidateLimitType(limit["type"], path.Child("type"), errors);
  std::set<std::string> names;
  for (const char* key : {"max", "min", "default", "defaultRequest", "maxLimitRequestRatio"}) {
    const Path list = path.Child(key);
    const bool of_default = std::string_view(key).starts_with("default");
    if (type == "Pod" && of_default && !limit[key].empty()) {
      errors.Forbidden(list, "may not be specified when `type` is 'Pod'");
      continue;
    }
    for (const auto& [name, value] : limit[key].members()) {
      if (type == "Pod" || type == "Container") {
        ValidateContainerResourceName(name, list.Key(name), errors);
      } else {
        ValidateResourceName(name, list.Key(name), errors);
      }
      if (std::string_view(key) != "maxLimitRequestRatio") names.insert(name);
    }
  }
  if (type == "PersistentVolumeClaim" && !limit["min"].Has("storage") &&
      !limit["max"].Has("storage")) {
    errors.Required(path.Child("limits"),
                    "either minimum or maximum storage value is required, but neither was "
                    "provided");
  }
  for (const std::string& name : names) {
    ValidateBounds(limit, name, path, errors);
    ValidateRatio(limit, name, path, errors);
  }
}

}  // namespace

void ValidateResourceQuota(const Value& quota, FieldErrors& errors) {
  const Value& spec = quota["spec"];
  const Path path("spec");
  ValidateQuotaAmounts(spec["hard"], path.Child("hard"), errors);
  ValidateScopes(spec, path.Child("scopes"), errors);
  ValidateScopeSelector(spec, path.Child("scopeSelector"), errors);
}

void ValidateResourceQuotaUpdate(const Value& before, const Value& after, FieldErrors& errors) {
  const auto scopes = [](const Value& quota) {
    const std::vector<std::string> list = json::ToStrings(quota["spec"]["scopes"]);
    return std::set<std::string>(list.begin(), list.end());
  };
  const Path path("spec");
  if (scopes(before) != scopes(after))
    errors.Invalid(path.Child("scopes"), after["spec"]["scopes"], kImmutable);
}

void ValidateResourceQuotaStatusUpdate(const Value&, const Value& after, FieldErrors& errors) {
  const Path path("status");
  for (const char* key : {"hard", "used"})
    ValidateQuotaAmounts(after["status"][key], path.Child(key), errors);
}

void ValidateLimitRange(const Value& range, FieldErrors& errors) {
  const Path spec("spec");
  const Path list = spec.Child("limits");
  std::set<std::string> types;
  for (size_t i = 0; i < range["spec"]["limits"].size(); ++i) {
    const Value& limit = range["spec"]["limits"].At(i);
    const Path place = list.Index(i);
    if (!types.insert(limit["type"].Str()).second)
      errors.Duplicate(place.Child("type"), limit["type"]);
    ValidateLimit(limit, place, errors);
  }
}

}  // namespace muster::schema
