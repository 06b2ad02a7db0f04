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
// What may stand without a domain somewhere in the API (quotas among them).
constexpr std::array<std::string_view, 20> kStandardResources = {"cpu",
                                                                 "memory",
                                                                 "ephemeral-storage",
                                                                 "requests.cpu",
                                                                 "requests.memory",
                                                                 "requests.ephemeral-storage",
                                                                 "limits.cpu",
                                                                 "limits.memory",
                                                                 "limits.ephemeral-storage",
                                                                 "pods",
                                                                 "resourcequotas",
                                                                 "services",
                                                                 "replicationcontrollers",
                                                                 "secrets",
                                                                 "configmaps",
                                                                 "persistentvolumeclaims",
                                                                 "storage",
                                                                 "requests.storage",
                                                                 "services.nodeports",
                                                                 "services.loadbalancers"};
constexpr std::string_view kHugePages = "hugepages-";

bool IsHugePages(std::string_view name) { return name.starts_with(kHugePages); }

template <size_t N>
bool IsOneOf(const std::array<std::string_view, N>& names, std::string_view name) {
  return IsHugePages(name) || std::find(names.begin(), names.end(), name) != names.end();
}

bool MayOvercommit(std::string_view name) { return IsNativeResource(name) && !IsHugePages(name); }

// Huge pages come in whole pages: "hugepages-2Mi" in multiples of 2Mi.
void ValidateHugePages(std::string_view name, const Amount& amount, const Path& path,
                       FieldErrors& errors) {
  const Result<Amount> page = ParseAmount(name.substr(kHugePages.size()));
  if (page && page->nano > 0 && page->IsWhole() && amount.nano % page->nano == 0) return;
  errors.Invalid(
      path, amount.Canonical(),
      fmt::format("{} is not positive integer multiple of {}", amount.Canonical(), name));
}

// One of the two lists; says whether it asks for huge pages and for cpu or memory.
struct Asked {
  bool huge_pages = false;
  bool cpu_or_memory = false;
};

void ValidateList(const Value& list, const Path& path, Asked& asked, FieldErrors& errors) {
  for (const auto& [name, value] : list.members()) {
    const Path place = path.Key(name);
    ValidateContainerResourceName(name, place, errors);
    ValidateAmount(name, value, place, errors);
    asked.cpu_or_memory = asked.cpu_or_memory || name == "cpu" || name == "memory";
    if (!IsHugePages(name)) continue;
    asked.huge_pages = true;
    if (const Result<Amount> amount = AmountFromJson(value))
      ValidateHugePages(name, *amount, place, errors);
  }
}

}  // namespace

void ValidateResourceName(const std::string& name, const Path& path, FieldErrors& errors) {
  if (!errors.Check(CheckQualifiedName, path, name)) return;
  const bool standard =
      IsOneOf(kStandardResources, name) || name.starts_with("requests.hugepages-");
  if (name.find('/') == std::string::npos && !standard)
    errors.Invalid(path, name, "must be a standard resource type or fully qualified");
}

void ValidateContainerResourceName(const std::string& name, const Path& path, FieldErrors& errors) {
  const bool qualified = errors.Check(CheckQualifiedName, path, name);
  if (name.find('/') != std::string::npos) {
    if (!IsNativeResource(name) && !(qualified && IsExtendedResource(name)))
      errors.Invalid(path, name, "doesn't follow extended resource name standard");
    return;
  }
  if (qualified && !IsOneOf(kStandardResources, name))
    errors.Invalid(path, name, "must be a standard resource type or fully qualified");
  if (!IsOneOf(kContainerResources, name))
    errors.Invalid(path, name, "must be a standard resource for containers");
}

void ValidateAmount(std::string_view name, const Value& value, const Path& path,
                    FieldErrors& errors) {
  const Result<Amount> amount = AmountFromJson(value);
  if (!amount) return errors.Invalid(path, value, "must be a quantity such as 500m, 2 or 1Gi");
  if (amount->nano < 0) errors.Invalid(path, amount->Canonical(), kNotNegativeMessage);
  if ((IsExtendedResource(name) || name == "pods") && !amount->IsWhole())
    errors.Invalid(path, amount->Canonical(), "must be an integer");
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
    const Value* limit_value = limits.Find(name);
    if (limit_value == nullptr) {
      if (!MayOvercommit(name))
        errors.Required(limits_path, "Limit must be set for non overcommitable resources");
      continue;
    }
    const Result<Amount> request = AmountFromJson(value);
    const Result<Amount> limit = AmountFromJson(*limit_value);
    if (!request || !limit) continue;
    if (!MayOvercommit(name) && !(*request == *limit)) {
      errors.Invalid(requests_path, request->Canonical(),
                     fmt::format("must be equal to {} limit of {}", name, limit->Canonical()));
    } else if (*request > *limit) {
      errors.Invalid(
          requests_path, request->Canonical(),
          fmt::format("must be less than or equal to {} limit of {}", name, limit->Canonical()));
    }
  }
  if (asked.huge_pages && !asked.cpu_or_memory)
    errors.Forbidden(path, "HugePages require cpu or memory");
}

}  // namespace muster::schema
