// Queues of Kueue's (kueue.x-k8s.io). Rules: kueue apis/kueue/v1beta1 and pkg/webhooks.

#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "schema/names.h"
#include "schema/quantity_syntax.h"
#include "schema/validation/kind_validation.h"

namespace muster::schema {
namespace {

using json::Value;

constexpr size_t kMaxQuotaGroups = 16;
constexpr size_t kMaxFlavorsOfGroup = 64;
constexpr size_t kMaxPodSets = 8;

void ValidateAmount(const Value& amount, const Path& path, FieldErrors& errors) {
  if (amount.IsNull()) return;
  const Result<Amount> parsed = AmountFromJson(amount);
  if (parsed && parsed->nano < 0) errors.Invalid(path, amount, kNotNegativeMessage);
}

void ValidateFlavorQuotas(const Value& group, const Value& flavor, bool in_cohort, const Path& path,
                          FieldErrors& errors) {
  const Value& covered = group["coveredResources"];
  const Path resources = path.Child("resources");
  for (size_t i = 0; i < flavor["resources"].size(); ++i) {
    const Value& quota = flavor["resources"].At(i);
    const Path place = resources.Index(i);
    if (quota["name"] != covered.At(i))
      errors.Invalid(place.Child("name"), quota["name"], "must match the name in coveredResources");
    for (const char* amount : {"nominalQuota", "borrowingLimit", "lendingLimit"})
      ValidateAmount(quota[amount], place.Child(amount), errors);
    for (const char* limit : {"borrowingLimit", "lendingLimit"}) {
      if (quota.Has(limit) && !in_cohort) {
        errors.Invalid(place.Child(limit), quota[limit],
                       fmt::format("{} must be nil when cohort is empty", limit));
      }
    }
  }
}

void ValidateGroup(const Value& group, bool in_cohort, const Path& path, FieldErrors& errors) {
  const Value& flavors = group["flavors"];
  const Path list = path.Child("flavors");
  if (flavors.size() > kMaxFlavorsOfGroup) errors.TooMany(list, flavors.size(), kMaxFlavorsOfGroup);
  for (size_t i = 0; i < flavors.size() && i < kMaxFlavorsOfGroup; ++i) {
    if (flavors.At(i)["resources"].size() == group["coveredResources"].size()) {
      ValidateFlavorQuotas(group, flavors.At(i), in_cohort, list.Index(i), errors);
      continue;
    }
    errors.Invalid(path, "flavors must have the same number of resources as the coveredResources");
  }
}

// Across all groups.
void ValidateUnique(const Value& groups, const Path& path, FieldErrors& errors) {
  std::set<std::string_view> resources, flavors;
  for (size_t i = 0; i < groups.size(); ++i) {
    const Path place = path.Index(i);
    const Path covered = place.Child("coveredResources");
    const Value& names = groups.At(i)["coveredResources"];
    if (names.empty()) errors.Required(covered);
    for (size_t k = 0; k < names.size(); ++k) {
      errors.Check(CheckQualifiedName, covered.Index(k), names.At(k));
      if (!resources.insert(names.At(k).AsString()).second)
        errors.Duplicate(covered.Index(k), names.At(k));
    }
    const Path list = place.Child("flavors");
    const Value& quotas = groups.At(i)["flavors"];
    if (quotas.empty()) errors.Required(list);
    for (size_t k = 0; k < quotas.size(); ++k) {
      const Path quota = list.Index(k);
      errors.Check(CheckDns1123Subdomain, quota.Child("name"), quotas.At(k)["name"]);
      if (!flavors.insert(quotas.At(k)["name"].AsString()).second)
        errors.Duplicate(quota.Child("name"), quotas.At(k)["name"]);
    }
  }
}

}  // namespace

void ValidateResourceFlavor(const Value& flavor, FieldErrors& errors) {
  const Path spec("spec");
  const Path taints = spec.Child("nodeTaints");
  const Path labels = spec.Child("nodeLabels");
  for (const auto& [key, value] : flavor["spec"]["nodeLabels"].members()) {
    errors.Check(CheckQualifiedName, labels, Value(key));
    errors.Check(CheckLabelValue, labels.Key(key), value);
  }
  ValidateTaints(flavor["spec"]["nodeTaints"], taints, errors);
}

void ValidateClusterQueue(const Value& queue, FieldErrors& errors) {
  const Value& spec = queue["spec"];
  const Path path("spec");
  const Path list = path.Child("resourceGroups");
  const Value& groups = spec["resourceGroups"];
  if (groups.size() > kMaxQuotaGroups) return errors.TooMany(list, groups.size(), kMaxQuotaGroups);
  const bool in_cohort =
      !spec["cohort"].AsString().empty() || !spec["cohortName"].AsString().empty();
  for (size_t i = 0; i < groups.size(); ++i)
    ValidateGroup(groups.At(i), in_cohort, list.Index(i), errors);
  ValidateUnique(groups, list, errors);
  for (const char* cohort : {"cohort", "cohortName"}) {
    if (!spec[cohort].AsString().empty())
      errors.Check(CheckDns1123Subdomain, path.Child(cohort), spec[cohort]);
  }
  if (spec.Has("namespaceSelector"))
    ValidateLabelSelector(spec["namespaceSelector"], path.Child("namespaceSelector"), errors);
}

void ValidateLocalQueue(const Value& queue, FieldErrors& errors) {
  const Path spec("spec");
  const Value& name = queue["spec"]["clusterQueue"];
  if (!name.AsString().empty())
    errors.Check(CheckDns1123Subdomain, spec.Child("clusterQueue"), name);
}

void ValidateLocalQueueUpdate(const Value& before, const Value& after, FieldErrors& errors) {
  const Path spec("spec");
  if (before["spec"]["clusterQueue"] != after["spec"]["clusterQueue"])
    errors.Invalid(spec.Child("clusterQueue"), after["spec"]["clusterQueue"], kImmutable);
}

void ValidateWorkload(const Value& workload, FieldErrors& errors) {
  const Path spec("spec");
  const Path list = spec.Child("podSets");
  const Value& pod_sets = workload["spec"]["podSets"];
  if (pod_sets.empty()) errors.Required(list);
  if (pod_sets.size() > kMaxPodSets) errors.TooMany(list, pod_sets.size(), kMaxPodSets);
  for (size_t i = 0; i < pod_sets.size(); ++i) {
    const Path pods = list.Index(i);
    errors.NotNegative(pods.Child("count"), pod_sets.At(i)["count"]);
  }
}

// What was reserved is for these pods, in this queue.
void ValidateWorkloadUpdate(const Value& before, const Value& after, FieldErrors& errors) {
  if (before["status"]["admission"].IsNull()) return;
  const Path spec("spec");
  for (const char* field : {"podSets", "queueName"}) {
    if (before["spec"][field] != after["spec"][field])
      errors.Invalid(spec.Child(field), after["spec"][field], kImmutable);
  }
}

}  // namespace muster::schema
