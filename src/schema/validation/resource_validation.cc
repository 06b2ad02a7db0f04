// Requests and limits: k8s.io/kubernetes pkg/apis/core/validation ValidateResourceRequirements.

#include <algorithm>
#include <array>
#include <optional>

#include "schema/quantity_syntax.h"
#include "schema/validation/pod_parts.h"

namespace muster::schema {
namespace {

using json::Value;

constexpr std::array<std::string_view, 3> kContainerResources = {"cpu", "memory",
                                                                 "ephemeral-storage"};
constexpr std::string_view kHugePages = "hugepages-";

bool IsStandard(std::string_view name) {
  return name.starts_with(kHugePages) ||
         std::find(kContainerResources.begin(), kContainerResources.end(), name) !=
             kContainerResources.end();
}

void ValidateName(const std::string& name, const Path& path, FieldErrors& errors) {
  if (!errors.Check(CheckQualifiedName, path, name) || IsStandard(name)) return;
  if (name.find('/') == std::string::npos) {
    errors.Invalid(path, name, "must be a standard resource type or fully qualified");
  } else if (name.starts_with("requests.") ||
             (name.find("kubernetes.io/") == std::string::npos && !IsExtendedResource(name))) {
    errors.Invalid(path, name, "doesn't follow extended resource name standard");
  }
}

std::optional<Amount> AmountOf(const Value& value) {
  Result<Amount> amount = ParseAmount(value.IsNumber() ? value.NumberToken() : value.AsString());
  if (!amount) return std::nullopt;
  return *amount;
}

// One of the two lists; says whether it asks for huge pages and for cpu or memory.
struct Asked {
  bool huge_pages = false;
  bool cpu_or_memory = false;
};

void ValidateList(const Value& list, const Path& path, Asked& asked, FieldErrors& errors) {
  for (const auto& [name, value] : list.members()) {
    const Path place = path.Key(name);
    ValidateName(name, place, errors);
    asked.huge_pages = asked.huge_pages || name.starts_with(kHugePages);
    asked.cpu_or_memory = asked.cpu_or_memory || name == "cpu" || name == "memory";
    const std::optional<Amount> amount = AmountOf(value);
    if (!amount) {
      errors.Invalid(place, value, "must be a quantity such as 500m, 2 or 1Gi");
    } else if (amount->nano < 0) {
      errors.Invalid(place, amount->Canonical(), kNotNegativeMessage);
    } else if (IsExtendedResource(name) && !amount->IsWhole()) {
      errors.Invalid(place, amount->Canonical(), "must be an integer");
    }
  }
}

}  // namespace

bool IsExtendedResource(std::string_view name) {
  if (IsStandard(name) || name.find('/') == std::string_view::npos || name.starts_with("requests."))
    return false;
  const std::string_view domain = name.substr(0, name.find('/'));
  return domain != "kubernetes.io" && !domain.ends_with(".kubernetes.io");
}

void ValidateResources(const Value& resources, const Path& path, FieldErrors& errors) {
  const Value& limits = resources["limits"];
  const Value& requests = resources["requests"];
  const Path limits_path = path.Child("limits");
  const Path requests_path = path.Child("requests");
  Asked asked;
  ValidateList(limits, limits_path, asked, errors);
  ValidateList(requests, requests_path, asked, errors);
  for (const auto& [name, value] : requests.members()) {
    const bool overcommit = !IsExtendedResource(name) && !name.starts_with(kHugePages);
    const Value* limit_value = limits.Find(name);
    if (limit_value == nullptr) {
      if (!overcommit)
        errors.Required(limits_path, "Limit must be set for non overcommitable resources");
      continue;
    }
    const std::optional<Amount> request = AmountOf(value);
    const std::optional<Amount> limit = AmountOf(*limit_value);
    if (!request || !limit) continue;
    if (!overcommit && !(*request == *limit)) {
      errors.Invalid(requests_path, request->Canonical(),
                     fmt::format("must be equal to {} limit of {}", name, limit->Canonical()));
    } else if (overcommit && *request > *limit) {
      errors.Invalid(
          requests_path, request->Canonical(),
          fmt::format("must be less than or equal to {} limit of {}", name, limit->Canonical()));
    }
  }
  if (asked.huge_pages && !asked.cpu_or_memory)
    errors.Forbidden(path, "HugePages require cpu or memory");
}

}  // namespace muster::schema
