// PodDisruptionBudget: k8s.io/kubernetes pkg/apis/policy/validation; its conditions:
// k8s.io/apimachinery pkg/apis/meta/v1/validation.

#include <algorithm>
#include <cctype>
#include <set>

#include "schema/validation/kind_validation.h"
#include "schema/validation/workload_parts.h"

namespace muster::schema {
namespace {

using json::Value;

constexpr size_t kMaxReasonBytes = 1024;
constexpr size_t kMaxMessageBytes = 32 * 1024;

bool IsLetter(char letter) { return std::isalpha(static_cast<unsigned char>(letter)) != 0; }
bool IsWordCharacter(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

void CheckConditionReason(std::string_view text, Problems& problems) {
  const bool fits = !text.empty() && IsLetter(text.front()) && IsWordCharacter(text.back()) &&
                    std::ranges::all_of(text, [](char letter) {
                      return IsWordCharacter(letter) || letter == ',' || letter == ':';
                    });
  if (fits) return;
  problems.emplace_back(
      "a condition reason must start with alphabetic character, optionally followed by a string of "
      "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. "
      "'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex "
      "used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')");
}

void ValidateCondition(const Value& condition, const Path& path, FieldErrors& errors) {
  errors.Check(CheckQualifiedName, path.Child("type"), condition["type"].AsString());
  errors.OneOf(path.Child("status"), condition["status"], {"False", "True", "Unknown"});
  if (condition["observedGeneration"].AsInt() < 0) {
    errors.Invalid(path.Child("observedGeneration"), condition["observedGeneration"],
                   "must be greater than or equal to zero");
  }
  if (condition["lastTransitionTime"].IsNull())
    errors.Required(path.Child("lastTransitionTime"), "must be set");
  const Value& reason = condition["reason"];
  if (reason.AsString().empty()) {
    errors.Required(path.Child("reason"), "must be set");
  } else {
    errors.Check(CheckConditionReason, path.Child("reason"), reason);
    if (reason.AsString().size() > kMaxReasonBytes)
      errors.TooLong(path.Child("reason"), kMaxReasonBytes);
  }
  if (condition["message"].AsString().size() > kMaxMessageBytes)
    errors.TooLong(path.Child("message"), kMaxMessageBytes);
}

void ValidateConditions(const Value& conditions, const Path& path, FieldErrors& errors) {
  std::set<std::string> types;
  for (size_t i = 0; i < conditions.size(); ++i) {
    const Path place = path.Index(i);
    const Value& type = conditions.At(i)["type"];
    if (!types.insert(type.Str()).second) errors.Duplicate(place.Child("type"), type);
    ValidateCondition(conditions.At(i), place, errors);
  }
}

}  // namespace

void ValidatePodDisruptionBudget(const Value& budget, FieldErrors& errors) {
  const Value& spec = budget["spec"];
  const Path path("spec");
  if (!spec["minAvailable"].IsNull() && !spec["maxUnavailable"].IsNull())
    errors.Invalid(path, spec, "minAvailable and maxUnavailable cannot be both set");
  for (const char* key : {"minAvailable", "maxUnavailable"}) {
    if (spec[key].IsNull()) continue;
    ValidateIntOrPercent(spec[key], path.Child(key), errors);
    ValidateAtMostAll(spec[key], path.Child(key), errors);
  }
  ValidateLabelSelector(spec["selector"], path.Child("selector"), errors);
  const Value& policy = spec["unhealthyPodEvictionPolicy"];
  if (!policy.IsNull()) {
    errors.OneOf(path.Child("unhealthyPodEvictionPolicy"), policy,
                 {"AlwaysAllow", "IfHealthyBudget"});
  }
}

void ValidatePodDisruptionBudgetStatusUpdate(const Value&, const Value& after,
                                             FieldErrors& errors) {
  const Path path("status");
  ValidateConditions(after["status"]["conditions"], path.Child("conditions"), errors);
  for (const char* key :
       {"disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"}) {
    errors.NotNegative(path.Child(key), after["status"][key]);
  }
}

}  // namespace muster::schema
