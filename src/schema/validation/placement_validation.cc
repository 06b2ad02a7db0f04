// Affinity, tolerations, spread: k8s.io/kubernetes pkg/apis/core/validation.

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

void ValidatePodAffinityTerm(const Value& term, const Path& path, FieldErrors& errors) {
  ValidateLabelSelector(term["labelSelector"], path.Child("labelSelector"), errors);
  ValidateLabelSelector(term["namespaceSelector"], path.Child("namespaceSelector"), errors);
  const Path namespaces = path.Child("namespaces");
  for (size_t i = 0; i < term["namespaces"].size(); ++i)
    errors.Check(CheckDns1123Label, namespaces.Index(i), term["namespaces"].At(i));
  if (term["topologyKey"].AsString().empty()) {
    errors.Required(path.Child("topologyKey"), "can not be empty");
  } else {
    errors.Check(CheckQualifiedName, path.Child("topologyKey"), term["topologyKey"]);
  }
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
      errors.Invalid(path.Child("operator"), toleration,
                     "value must be empty when `operator` is 'Exists'");
    }
  } else {
    errors.NotSupported(path.Child("operator"), op, {"Equal", "Exists"});
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
    if (requirement["key"].AsString() != "metadata.name")
      errors.Invalid(place.Child("key"), requirement["key"], "not a valid field selector key");
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
  for (size_t i = 0; i < constraints.size(); ++i) {
    const Value& constraint = constraints.At(i);
    const Path place = path.Index(i);
    if (constraint["maxSkew"].AsInt() <= 0)
      errors.Invalid(place.Child("maxSkew"), constraint["maxSkew"].AsInt(),
                     "must be greater than zero");
    if (constraint["topologyKey"].AsString().empty()) {
      errors.Required(place.Child("topologyKey"), "can not be empty");
    } else {
      errors.Check(CheckQualifiedName, place.Child("topologyKey"), constraint["topologyKey"]);
    }
    errors.OneOf(place.Child("whenUnsatisfiable"), constraint["whenUnsatisfiable"],
                 {"DoNotSchedule", "ScheduleAnyway"});
    ValidateLabelSelector(constraint["labelSelector"], place.Child("labelSelector"), errors);
  }
}

}  // namespace muster::schema
