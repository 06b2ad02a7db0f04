// NodePool and NodeClaim: the rules of the CRDs of kubernetes-sigs/karpenter (pkg/apis/v1).

#include <algorithm>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "base/go_duration.h"
#include "base/strings.h"
#include "schema/validation/kind_validation.h"

namespace muster::schema {
namespace {

using json::Value;

constexpr size_t kMaxBudgets = 50;
constexpr size_t kMaxRequirements = 100;
// The autoscaler's own.
constexpr std::string_view kRestricted[] = {"karpenter.sh/nodepool", "kubernetes.io/hostname"};

bool IsDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

bool IsDuration(std::string_view text) {
  return text == "Never" || (ParseGoDuration(text).has_value() && text.find("ms") == text.npos &&
                             text.find_first_not_of("0123456789smh") == text.npos);
}

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
  if (compares && (values.size() != 1 || !IsDigits(values.At(0).AsString()))) {
    errors.Invalid(path, requirement,
                   "requirements operator 'Gt' or 'Lt' must have a single positive integer value");
  }
}

void CheckRequirements(const Value& requirements, const Path& path, bool may_name_pool,
                       FieldErrors& errors) {
  if (requirements.size() > kMaxRequirements)
    return errors.TooMany(path, requirements.size(), kMaxRequirements);
  for (size_t i = 0; i < requirements.size() && !errors.full(); ++i) {
    const Value& requirement = requirements.At(i);
    CheckRequirement(requirement, path.Index(i), errors);
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
  for (const auto& [key, value] : of_template["metadata"]["labels"].members())
    CheckRestricted(key, place.Child("metadata").Child("labels"), errors);
  CheckRequirements(of_template["spec"]["requirements"], place.Child("spec").Child("requirements"),
                    false, errors);
  CheckDisruption(spec["disruption"], path.Child("disruption"), errors);
  const Value& weight = spec["weight"];
  if (!weight.IsNull() && (weight.AsInt() < 1 || weight.AsInt() > 100))
    errors.Invalid(path.Child("weight"), weight, "should be between 1 and 100");
}

void ValidateNodeClaim(const Value& claim, FieldErrors& errors) {
  CheckRequirements(claim["spec"]["requirements"], Path("spec").Child("requirements"), true,
                    errors);
}

}  // namespace muster::schema
