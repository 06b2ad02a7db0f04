// Affinity, tolerations, spread: k8s.io/kubernetes pkg/apis/core/validation.

#include <algorithm>
#include <unordered_map>

#include "base/strings.h"
#include "schema/validation/kind_validation.h"
#include "schema/validation/pod_parts.h"

namespace muster::schema {
namespace {

using json::Value;

void ValidateRequirement(const Value& requirement, const Path& path, FieldErrors& errors) {
  const std::string_view op = requirement["operator"].AsString();
  const Value& values = requirement["values"];
  const Path list = path.Child("values");
  if (op == "In" || op == "NotIn") {
    if (values.empty())
      errors.Required(list, "must be specified when `operator` is 'In' or 'NotIn'");
  } else if (op == "Exists" || op == "DoesNotExist") {
    if (!values.empty())
      errors.Forbidden(list, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
  } else if (op == "Gt" || op == "Lt") {
    if (values.size() != 1)
      errors.Required(list, "must be specified single value when `operator` is 'Lt' or 'Gt'");
  } else {
    errors.Invalid(path.Child("operator"), op, "not a valid selector operator");
  }
}

void ValidateWeight(const Value& term, const Path& path, FieldErrors& errors) {
  const int64_t weight = term["weight"].AsInt();
  if (weight < 1 || weight > 100)
    errors.Invalid(path.Child("weight"), weight, "must be in the range 1-100");
}

void ValidateNodeAffinity(const Value& affinity, const Path& path, FieldErrors& errors) {
  const Value& required = affinity["requiredDuringSchedulingIgnoredDuringExecution"];
  if (!required.IsNull()) {
    const Path required_path = path.Child("requiredDuringSchedulingIgnoredDuringExecution");
    const Path terms = required_path.Child("nodeSelectorTerms");
    if (required["nodeSelectorTerms"].empty())
      errors.Required(terms, "must have at least one node selector term");
    for (size_t i = 0; i < required["nodeSelectorTerms"].size(); ++i) {
      ValidateNodeSelectorTerm(required["nodeSelectorTerms"].At(i), terms.Index(i), errors);
    }
  }
  const Value& preferred = affinity["preferredDuringSchedulingIgnoredDuringExecution"];
  const Path preferred_path = path.Child("preferredDuringSchedulingIgnoredDuringExecution");
  for (size_t i = 0; i < preferred.size(); ++i) {
    const Path place = preferred_path.Index(i);
    ValidateWeight(preferred.At(i), place, errors);
    ValidateNodeSelectorTerm(preferred.At(i)["preference"], place.Child("preference"), errors);
  }
}

// The keys whose values a pod's own labels add to the selector of an affinity term.
void ValidateLabelKeys(const Value& term, const Path& path, FieldErrors& errors) {
  for (const char* list : {"matchLabelKeys", "mismatchLabelKeys"}) {
    const Path place = path.Child(list);
    if (term[list].empty()) continue;
    if (term["labelSelector"].IsNull()) {
      errors.Forbidden(place, "must not be specified when labelSelector is not set");
      continue;
    }
    for (size_t i = 0; i < term[list].size(); ++i)
      errors.Check(CheckQualifiedName, place.Index(i), term[list].At(i));
  }
  const std::vector<std::string> mismatched = json::ToStrings(term["mismatchLabelKeys"]);
  const Path matched = path.Child("matchLabelKeys");
  for (size_t i = 0; i < term["matchLabelKeys"].size(); ++i) {
    const Value& key = term["matchLabelKeys"].At(i);
    if (std::ranges::find(mismatched, key.AsString()) != mismatched.end())
      errors.Invalid(matched.Index(i), key, "exists in both matchLabelKeys and mismatchLabelKeys");
  }
}

void ValidatePodAffinityTerm(const Value& term, const Path& path, FieldErrors& errors) {
  ValidateLabelSelector(term["labelSelector"], path.Child("labelSelector"), errors);
  ValidateLabelSelector(term["namespaceSelector"], path.Child("namespaceSelector"), errors);
  for (const Value& ns : term["namespaces"].items())
    errors.Check(CheckDns1123Label, path.Child("namespace"), ns);
  ValidateLabelKeys(term, path, errors);
  if (term["topologyKey"].AsString().empty())
    errors.Required(path.Child("topologyKey"), "can not be empty");
  errors.Check(CheckQualifiedName, path.Child("topologyKey"), term["topologyKey"].AsString());
}

void ValidatePodAffinity(const Value& affinity, const Path& path, FieldErrors& errors) {
  const Value& required = affinity["requiredDuringSchedulingIgnoredDuringExecution"];
  const Path required_path = path.Child("requiredDuringSchedulingIgnoredDuringExecution");
  for (size_t i = 0; i < required.size(); ++i)
    ValidatePodAffinityTerm(required.At(i), required_path.Index(i), errors);
  const Value& preferred = affinity["preferredDuringSchedulingIgnoredDuringExecution"];
  const Path preferred_path = path.Child("preferredDuringSchedulingIgnoredDuringExecution");
  for (size_t i = 0; i < preferred.size(); ++i) {
    const Path place = preferred_path.Index(i);
    ValidateWeight(preferred.At(i), place, errors);
    ValidatePodAffinityTerm(preferred.At(i)["podAffinityTerm"], place.Child("podAffinityTerm"),
                            errors);
  }
}

void ValidateTolerationOperator(const Value& toleration, const Path& path, FieldErrors& errors) {
  const std::string_view op = toleration["operator"].AsString();
  if (op.empty() || op == "Equal") {
    Problems problems;
    CheckLabelValue(toleration["value"].AsString(), problems);
    if (!problems.empty())
      errors.Invalid(path.Child("operator"), toleration["value"], Join(problems, ";"));
  } else if (op == "Exists") {
    if (!toleration["value"].AsString().empty()) {
      errors.Invalid(path.Child("operator"), toleration["value"],
                     "value must be empty when `operator` is 'Exists'");
    }
  } else {
    errors.NotSupported(path.Child("operator"), op, {"Equal", "Exists"});
  }
}

constexpr std::string_view kNotPositive = "must be greater than zero";

void ValidateSpreadDetails(const Value& constraint, const Path& path, FieldErrors& errors) {
  const Value& domains = constraint["minDomains"];
  const std::string_view action = constraint["whenUnsatisfiable"].AsString();
  if (!domains.IsNull() && domains.AsInt() <= 0)
    errors.Invalid(path.Child("minDomains"), domains, kNotPositive);
  if (!domains.IsNull() && action != "DoNotSchedule") {
    errors.Invalid(
        path.Child("minDomains"), domains,
        fmt::format("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {}", action));
  }
  for (const char* policy : {"nodeAffinityPolicy", "nodeTaintsPolicy"}) {
    if (!constraint[policy].IsNull())
      errors.OneOf(path.Child(policy), constraint[policy], {"Honor", "Ignore"});
  }
  const Value& keys = constraint["matchLabelKeys"];
  const Value& selector = constraint["labelSelector"];
  const Path list = path.Child("matchLabelKeys");
  if (!keys.empty() && selector.IsNull())
    errors.Forbidden(list, "must not be specified when labelSelector is not set");
  for (size_t i = 0; i < keys.size(); ++i) {
    errors.Check(CheckQualifiedName, list.Index(i), keys.At(i));
    const auto& expressions = selector["matchExpressions"].items();
    const bool selected =
        selector["matchLabels"].Has(keys.At(i).AsString()) ||
        std::ranges::any_of(expressions, [&](const Value& e) { return e["key"] == keys.At(i); });
    if (selected)
      errors.Invalid(list.Index(i), keys.At(i), "exists in both matchLabelKeys and labelSelector");
  }
}

}  // namespace

void ValidateNodeSelectorTerm(const Value& term, const Path& path, FieldErrors& errors) {
  const Path expressions = path.Child("matchExpressions");
  for (size_t i = 0; i < term["matchExpressions"].size(); ++i) {
    const Path place = expressions.Index(i);
    ValidateRequirement(term["matchExpressions"].At(i), place, errors);
    errors.Check(CheckQualifiedName, place.Child("key"), term["matchExpressions"].At(i)["key"]);
  }
  const Path fields = path.Child("matchFields");
  for (size_t i = 0; i < term["matchFields"].size(); ++i) {
    const Value& requirement = term["matchFields"].At(i);
    const Path place = fields.Index(i);
    const std::string_view op = requirement["operator"].AsString();
    if ((op == "In" || op == "NotIn") && requirement["values"].size() != 1) {
      errors.Required(
          place.Child("values"),
          "must be only one value when `operator` is 'In' or 'NotIn' for node field selector");
    } else if (op != "In" && op != "NotIn") {
      errors.Invalid(place.Child("operator"), op, "not a valid selector operator");
    }
    if (requirement["key"].AsString() != "metadata.name") {
      errors.Invalid(place.Child("key"), requirement["key"], "not a valid field selector key");
      continue;
    }
    const Path values = place.Child("values");
    for (size_t j = 0; j < requirement["values"].size(); ++j)
      errors.Check(CheckDns1123Subdomain, values.Index(j), requirement["values"].At(j));
  }
}

void ValidateAffinity(const Value& affinity, const Path& path, FieldErrors& errors) {
  if (!affinity["nodeAffinity"].IsNull())
    ValidateNodeAffinity(affinity["nodeAffinity"], path.Child("nodeAffinity"), errors);
  for (const char* key : {"podAffinity", "podAntiAffinity"}) {
    if (!affinity[key].IsNull()) ValidatePodAffinity(affinity[key], path.Child(key), errors);
  }
}

void ValidateTolerations(const Value& tolerations, const Path& path, FieldErrors& errors) {
  for (size_t i = 0; i < tolerations.size(); ++i) {
    const Value& toleration = tolerations.At(i);
    const Path place = path.Index(i);
    const std::string_view key = toleration["key"].AsString();
    if (!key.empty()) {
      errors.Check(CheckQualifiedName, place.Child("key"), toleration["key"]);
    } else if (toleration["operator"].AsString() != "Exists") {
      errors.Invalid(place.Child("operator"), toleration["operator"].AsString(),
                     "operator must be Exists when `key` is empty, which means \"match all values "
                     "and all keys\"");
    }
    const std::string_view effect = toleration["effect"].AsString();
    if (!toleration["tolerationSeconds"].IsNull() && effect != "NoExecute") {
      errors.Invalid(place.Child("effect"), effect,
                     "effect must be 'NoExecute' when `tolerationSeconds` is set");
    }
    ValidateTolerationOperator(toleration, place, errors);
    if (!effect.empty())
      errors.OneOf(place.Child("effect"), toleration["effect"],
                   {"NoSchedule", "PreferNoSchedule", "NoExecute"});
  }
}

void ValidateTopologySpread(const Value& constraints, const Path& path, FieldErrors& errors) {
  const auto kind_of = [](const Value& constraint) {
    return fmt::format("{{{}, {}}}", constraint["topologyKey"].AsString(),
                       constraint["whenUnsatisfiable"].AsString());
  };
  std::unordered_map<std::string, size_t> left;  // how many of a kind are still to come
  for (const Value& constraint : constraints.items()) ++left[kind_of(constraint)];
  for (size_t i = 0; i < constraints.size(); ++i) {
    const Value& constraint = constraints.At(i);
    const Path place = path.Index(i);
    if (constraint["maxSkew"].AsInt() <= 0)
      errors.Invalid(place.Child("maxSkew"), constraint["maxSkew"].AsInt(), kNotPositive);
    if (constraint["topologyKey"].AsString().empty())
      errors.Required(place.Child("topologyKey"), "can not be empty");
    errors.OneOf(place.Child("whenUnsatisfiable"), constraint["whenUnsatisfiable"],
                 {"DoNotSchedule", "ScheduleAnyway"});
    if (--left[kind_of(constraint)] > 0)
      errors.Duplicate(place.Child("{topologyKey, whenUnsatisfiable}"), kind_of(constraint));
    ValidateSpreadDetails(constraint, place, errors);
    ValidateLabelSelector(constraint["labelSelector"], place.Child("labelSelector"), errors);
  }
}

}  // namespace muster::schema
