// What may change in a Pod: k8s.io/kubernetes pkg/apis/core/validation ValidatePodUpdate.

#include <algorithm>

#include "base/strings.h"
#include "schema/validation/kind_validation.h"
#include "schema/validation/pod_parts.h"

namespace muster::schema {
namespace {

using json::Value;

constexpr size_t kMaxShownDifferences = 10;
constexpr std::string_view kMayNotChange =
    "pod updates may not change fields other than "
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec."
    "tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was "
    "previously negative)";

// The containers of `after` with the images of `before`, if the lists have one length.
Value WithImagesOf(const Value& before, const Value& after) {
  json::Array items;
  for (size_t i = 0; i < after.size(); ++i) {
    const Value& image = before.At(i)["image"];
    items.push_back(image.IsNull() ? after.At(i).Remove("image") : after.At(i).Set("image", image));
  }
  return items.empty() ? after : Value(std::move(items));
}

void Differences(const Value& before, const Value& after, const Path& path,
                 std::vector<std::string>& found) {
  if (found.size() >= kMaxShownDifferences || before == after) return;
  if (before.IsObject() && after.IsObject()) {
    for (const auto& [key, value] : before.members())
      Differences(value, after[key], path.Child(key), found);
    for (const auto& [key, value] : after.members()) {
      if (!before.Has(key)) Differences(Value(), value, path.Child(key), found);
    }
  } else if (before.IsArray() && after.IsArray() && before.size() == after.size()) {
    for (size_t i = 0; i < before.size(); ++i)
      Differences(before.At(i), after.At(i), path.Index(i), found);
  } else {
    found.push_back(fmt::format("{}: {} -> {}", path.ToString(), Shown(before), Shown(after)));
  }
}

bool SameButSeconds(const Value& a, const Value& b) {
  return a.Remove("tolerationSeconds") == b.Remove("tolerationSeconds");
}

// Every toleration must stay; only its seconds may change, and more may come.
void ValidateTolerationsKept(const Value& before, const Value& after, const Path& path,
                             FieldErrors& errors) {
  for (const Value& old : before.items()) {
    const bool kept =
        std::any_of(after.items().begin(), after.items().end(), [&](const Value& now) {
          return old == now ||
                 (old["effect"].AsString() == "NoExecute" && SameButSeconds(old, now));
        });
    if (!kept)
      errors.Forbidden(path,
                       "existing toleration can not be modified except its tolerationSeconds");
  }
}

void ValidateDeadline(const Value& before, const Value& after, const Path& path,
                      FieldErrors& errors) {
  if (before.IsNull() || before == after) return;
  if (after.IsNull()) {
    errors.Invalid(path, after, "must not update from a positive integer to nil value");
  } else if (after.AsInt() < 0 || after.AsInt() > before.AsInt()) {
    errors.Invalid(path, after, "must be less than or equal to previous value");
  }
}

// Scheduling gates may only go away, and while there are some, placement may still be narrowed.
void ValidateGatesRemoved(const Value& before, const Value& after, const Path& path,
                          FieldErrors& errors) {
  for (const Value& gate : after.items()) {
    if (std::find(before.items().begin(), before.items().end(), gate) == before.items().end()) {
      errors.Forbidden(path, "only deletion is allowed, but found new scheduling gate '" +
                                 gate["name"].Str() + "'");
    }
  }
}

}  // namespace

void ValidatePodUpdate(const Value& before, const Value& after, FieldErrors& errors) {
  const Path path("spec");
  const Value& old = before["spec"];
  const Value& now = after["spec"];
  if (old.SameAs(now) || old == now) return;
  for (const char* list : {"containers", "initContainers"}) {
    if (old[list].size() == now[list].size()) continue;
    errors.Forbidden(path.Child(list), "pod updates may not add or remove containers");
    return;
  }
  ValidateDeadline(old["activeDeadlineSeconds"], now["activeDeadlineSeconds"],
                   path.Child("activeDeadlineSeconds"), errors);
  ValidateTolerationsKept(old["tolerations"], now["tolerations"], path.Child("tolerations"),
                          errors);
  ValidateGatesRemoved(old["schedulingGates"], now["schedulingGates"],
                       path.Child("schedulingGates"), errors);
  Value comparable = now;
  const auto ignore = [&](const char* key) {
    comparable = old.Has(key) ? std::move(comparable).Set(key, old[key]) : comparable.Remove(key);
  };
  for (const char* key : {"activeDeadlineSeconds", "tolerations", "schedulingGates"}) ignore(key);
  if (old["terminationGracePeriodSeconds"].AsInt() < 0 &&
      now["terminationGracePeriodSeconds"].AsInt() == 1) {
    ignore("terminationGracePeriodSeconds");
  }
  if (!old["schedulingGates"].empty()) {
    ignore("nodeSelector");
    ignore("affinity");
  }
  for (const char* list : {"containers", "initContainers"}) {
    if (comparable.Has(list))
      comparable = std::move(comparable).Set(list, WithImagesOf(old[list], now[list]));
  }
  if (comparable == old) return;
  std::vector<std::string> found;
  Differences(old, comparable, path, found);
  errors.Forbidden(path, fmt::format("{}\n{}", kMayNotChange, Join(found, "\n")));
}

void ValidatePodStatusUpdate(const Value& before, const Value& after, FieldErrors& errors) {
  const Path spec("spec");
  if (!(before["spec"]["nodeName"] == after["spec"]["nodeName"])) {
    errors.Forbidden(spec.Child("nodeName"), "may not be changed directly");
  }
  const Path status("status");
  const std::string_view nominated = after["status"]["nominatedNodeName"].AsString();
  if (!nominated.empty())
    errors.Check(CheckDns1123Subdomain, status.Child("nominatedNodeName"), nominated);
  const std::string_view phase = after["status"]["phase"].AsString();
  if (!phase.empty()) {
    errors.OneOf(status.Child("phase"), phase,
                 {"Failed", "Pending", "Running", "Succeeded", "Unknown"});
  }
}

}  // namespace muster::schema
