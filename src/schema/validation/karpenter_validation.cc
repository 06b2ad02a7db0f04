// NodePool and NodeClaim: the rules of the CRDs of kubernetes-sigs/karpenter (pkg/apis/v1).

#include <algorithm>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "base/go_duration.h"
#include "base/strings.h"
#include "schema/names.h"
#include "schema/quantity_syntax.h"
#include "schema/validation/kind_validation.h"

namespace muster::schema {
namespace {

using json::Value;

constexpr size_t kMaxBudgets = 50;
constexpr size_t kMaxRequirements = 100;
constexpr int64_t kMaxMinValues = 50;
// The autoscaler's own.
constexpr std::string_view kRestricted[] = {"karpenter.sh/nodepool", "kubernetes.io/hostname"};

bool IsDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

// As the CRD's pattern: 30s, 1h30m.
bool IsSpan(std::string_view text) {
  return ParseGoDuration(text).has_value() && text.find("ms") == text.npos &&
         text.find_first_not_of("0123456789smh") == text.npos;
}

bool IsDuration(std::string_view text) { return text == "Never" || IsSpan(text); }

bool IsBudget(std::string_view text) {
  if (!text.ends_with('%')) return IsDigits(text);
  text.remove_suffix(1);
  return IsDigits(text) && text.size() <= 3 && ParseInt(text).value_or(101) <= 100;
}

void CheckRestricted(std::string_view key, const Path& path, FieldErrors& errors) {
  if (std::ranges::find(kRestricted, key) != std::end(kRestricted))
    errors.Invalid(path, std::string(key), fmt::format("label \"{}\" is restricted", key));
}

void CheckRequirement(const Value& requirement, const Path& path, FieldErrors& errors) {
  const std::string_view op = requirement["operator"].AsString();
  const Value& values = requirement["values"];
  if (op == "In" && values.empty())
    errors.Invalid(path, requirement, "requirements with operator 'In' must have a value defined");
  const bool compares = op == "Gt" || op == "Lt";
  const auto is_number = [](const Value& value) {
    return IsDigits(value.AsString()) && ParseInt(value.AsString()).has_value();
  };
  if (compares && (values.size() != 1 || !is_number(values.At(0)))) {
    errors.Invalid(path, requirement,
                   "requirements operator 'Gt' or 'Lt' must have a single positive integer value");
  }
}

// Labels of nodes have these.
void CheckNames(const Value& requirement, const Path& path, FieldErrors& errors) {
  errors.Check(CheckQualifiedName, path.Child("key"), requirement["key"]);
  const Path values = path.Child("values");
  for (size_t i = 0; i < requirement["values"].size() && !errors.full(); ++i)
    errors.Check(CheckLabelValue, values.Index(i), requirement["values"].At(i));
  const Value& least = requirement["minValues"];
  if (!least.IsNull() && (least.AsInt() < 1 || least.AsInt() > kMaxMinValues))
    errors.Invalid(path.Child("minValues"), least,
                   fmt::format("should be between 1 and {}", kMaxMinValues));
}

// In a pool's template or in a claim. A Node with other taints would be refused again and again.
void CheckNodeSpec(const Value& spec, const Path& path, FieldErrors& errors) {
  for (const char* list : {"taints", "startupTaints"})
    ValidateTaints(spec[list], path.Child(list), errors);
  const Value& expires = spec["expireAfter"];
  if (!expires.IsNull() && !IsDuration(expires.AsString()))
    errors.Invalid(path.Child("expireAfter"), expires,
                   "should be a duration such as 720h, or Never");
  const Value& grace = spec["terminationGracePeriod"];
  if (!grace.IsNull() && !IsSpan(grace.AsString()))
    errors.Invalid(path.Child("terminationGracePeriod"), grace,
                   "should be a duration such as 30s or 48h");
}

void CheckAmounts(const Value& amounts, const Path& path, FieldErrors& errors) {
  for (const auto& [name, amount] : amounts.members()) {
    errors.Check(CheckQualifiedName, path, Value(name));
    const Result<Amount> read = AmountFromJson(amount);
    if (read && read->nano < 0) errors.Invalid(path.Key(name), amount, kNotNegativeMessage);
  }
}

void CheckRequirements(const Value& requirements, const Path& path, bool may_name_pool,
                       FieldErrors& errors) {
  if (requirements.size() > kMaxRequirements)
    return errors.TooMany(path, requirements.size(), kMaxRequirements);
  for (size_t i = 0; i < requirements.size() && !errors.full(); ++i) {
    const Value& requirement = requirements.At(i);
    CheckRequirement(requirement, path.Index(i), errors);
    CheckNames(requirement, path.Index(i), errors);
    if (!may_name_pool)
      CheckRestricted(requirement["key"].AsString(), path.Index(i).Child("key"), errors);
  }
}

void CheckDisruption(const Value& disruption, const Path& path, FieldErrors& errors) {
  const Value& after = disruption["consolidateAfter"];
  if (!IsDuration(after.AsString()))
    errors.Invalid(path.Child("consolidateAfter"), after,
                   "should be a duration such as 30s or 1h30m, or Never");
  const Value& budgets = disruption["budgets"];
  const Path all = path.Child("budgets");
  if (budgets.size() > kMaxBudgets) return errors.TooMany(all, budgets.size(), kMaxBudgets);
  for (size_t i = 0; i < budgets.size() && !errors.full(); ++i) {
    const Path place = all.Index(i);
    const Value& nodes = budgets.At(i)["nodes"];
    if (!IsBudget(nodes.AsString()))
      errors.Invalid(place.Child("nodes"), nodes,
                     "should be a number of nodes or a percentage up to 100%");
    for (size_t k = 0; k < budgets.At(i)["reasons"].size(); ++k) {
      errors.OneOf(place.Child("reasons").Index(k), budgets.At(i)["reasons"].At(k),
                   {"Underutilized", "Empty", "Drifted"});
    }
  }
}

}  // namespace

void ValidateNodePool(const Value& pool, FieldErrors& errors) {
  // It is a label of nodes.
  const Value& name = pool["metadata"]["name"];
  if (name.AsString().size() > kMaxDnsLabelLength)
    errors.Invalid(Path("metadata").Child("name"), name,
                   fmt::format("must be no more than {} bytes", kMaxDnsLabelLength));
  const Value& spec = pool["spec"];
  const Path path("spec");
  const Value& of_template = spec["template"];
  const Path place = path.Child("template");
  const Path metadata = place.Child("metadata");
  const Path labels = metadata.Child("labels");
  for (const auto& [key, value] : of_template["metadata"]["labels"].members())
    CheckRestricted(key, labels, errors);
  ValidateLabels(of_template["metadata"]["labels"], labels, errors);
  ValidateAnnotations(of_template["metadata"]["annotations"], metadata.Child("annotations"),
                      errors);
  CheckNodeSpec(of_template["spec"], place.Child("spec"), errors);
  CheckAmounts(spec["limits"], path.Child("limits"), errors);
  errors.NotNegative(path.Child("replicas"), spec["replicas"]);
  CheckRequirements(of_template["spec"]["requirements"], place.Child("spec").Child("requirements"),
                    false, errors);
  CheckDisruption(spec["disruption"], path.Child("disruption"), errors);
  const Value& weight = spec["weight"];
  if (!weight.IsNull() && (weight.AsInt() < 1 || weight.AsInt() > 100))
    errors.Invalid(path.Child("weight"), weight, "should be between 1 and 100");
}

void ValidateNodeClaim(const Value& claim, FieldErrors& errors) {
  const Path path("spec");
  const Path resources = path.Child("resources");
  CheckRequirements(claim["spec"]["requirements"], path.Child("requirements"), true, errors);
  CheckNodeSpec(claim["spec"], path, errors);
  CheckAmounts(claim["spec"]["resources"]["requests"], resources.Child("requests"), errors);
}

}  // namespace muster::schema
