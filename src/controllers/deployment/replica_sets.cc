#include "controllers/deployment/replica_sets.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "base/strings.h"
#include "controllers/pods/int_or_percent.h"
#include "controllers/pods/ownership.h"

namespace muster::controllers {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int32_t>::max();
// Longer histories lose their oldest revisions.
constexpr size_t kMaxRevisionHistoryLength = 2000;

// Annotations that are the Deployment's own business.
constexpr std::array<std::string_view, 6> kNotCopied = {
    "kubectl.kubernetes.io/last-applied-configuration",
    kRevisionAnnotation,
    kRevisionHistoryAnnotation,
    kDesiredReplicasAnnotation,
    kMaxReplicasAnnotation,
    "deprecated.deployment.rollback.to"};

int64_t LimitOf(const json::Value& value) {
  const std::optional<int64_t> limit = value.Int();
  return limit.has_value() && *limit < kNoLimit ? *limit : -1;
}

bool IsCopied(std::string_view annotation) {
  return std::find(kNotCopied.begin(), kNotCopied.end(), annotation) == kNotCopied.end();
}

std::string WithRevision(std::string_view history, std::string_view revision) {
  std::string out =
      history.empty() ? std::string(revision) : fmt::format("{},{}", history, revision);
  while (out.size() > kMaxRevisionHistoryLength && out.find(',') != out.npos)
    out.erase(0, out.find(',') + 1);
  return out;
}

// What the ReplicaSet would have if it kept its share of the whole.
int64_t ShareOf(const ReplicaSetView& replica_set, const DeploymentSpec& spec,
                int64_t replicas_before) {
  const int64_t size = replica_set.replicas();
  if (spec.replicas == 0) return -size;
  const int64_t whole =
      ParseInt(replica_set.annotation(kMaxReplicasAnnotation)).value_or(replicas_before);
  if (whole <= 0) return 0;
  const double share = static_cast<double>(size) *
                       static_cast<double>(spec.replicas + spec.max_surge) /
                       static_cast<double>(whole);
  return std::llround(share) - size;
}

}  // namespace

DeploymentSpec::DeploymentSpec(const json::Value& deployment) {
  const json::Value& spec = deployment["spec"];
  replicas = spec["replicas"].AsInt(1);
  recreate = spec["strategy"]["type"].AsString() == "Recreate";
  paused = spec["paused"].AsBool();
  min_ready_seconds = spec["minReadySeconds"].AsInt();
  revision_history_limit = LimitOf(spec["revisionHistoryLimit"]);
  progress_deadline_seconds = LimitOf(spec["progressDeadlineSeconds"]);
  if (recreate || replicas == 0) return;
  const json::Value& pace = spec["strategy"]["rollingUpdate"];
  max_surge = ScaledValue(pace["maxSurge"], replicas, true);
  max_unavailable = std::min(ScaledValue(pace["maxUnavailable"], replicas, false), replicas);
  // Nothing would ever move.
  if (max_surge == 0 && max_unavailable == 0) max_unavailable = 1;
}

int64_t ReplicaSetView::revision() const {
  return ParseInt(annotation(kRevisionAnnotation)).value_or(0);
}

void ReplicaSetView::SetReplicas(int64_t replicas) {
  if (replicas == this->replicas()) return;
  object = object.SetPath({"spec", "replicas"}, replicas);
  changed = true;
}

bool ReplicaSetView::SetAnnotation(std::string_view key, std::string value) {
  if (object["metadata"]["annotations"].Has(key) && annotation(key) == value) return false;
  object = object.SetPath({"metadata", "annotations", key}, std::move(value));
  changed = true;
  return true;
}

bool ReplicaSetView::SetSizeAnnotations(const DeploymentSpec& spec) {
  const bool desired = SetAnnotation(kDesiredReplicasAnnotation, fmt::format("{}", spec.replicas));
  const bool most =
      SetAnnotation(kMaxReplicasAnnotation, fmt::format("{}", spec.replicas + spec.max_surge));
  return desired || most;
}

bool HasTemplateOf(const json::Value& replica_set, const json::Value& deployment) {
  const json::Value& wanted = deployment["spec"]["template"];
  const json::Value& pod_template = replica_set["spec"]["template"];
  return pod_template.RemovePath({"metadata", "labels", kTemplateHashLabel}) ==
         wanted.RemovePath({"metadata", "labels", kTemplateHashLabel});
}

json::Value NewReplicaSet(const json::Value& deployment, const std::string& hash) {
  const json::Value& spec = deployment["spec"];
  const json::Value pod_template =
      spec["template"].SetPath({"metadata", "labels", kTemplateHashLabel}, hash);
  json::Value out_spec =
      json::Obj({{"replicas", 0},
                 {"selector", spec["selector"].SetPath({"matchLabels", kTemplateHashLabel}, hash)},
                 {"template", pod_template}});
  if (spec["minReadySeconds"].AsInt() != 0)
    out_spec = std::move(out_spec).Set("minReadySeconds", spec["minReadySeconds"]);
  return json::Obj(
      {{"apiVersion", "apps/v1"},
       {"kind", "ReplicaSet"},
       {"metadata",
        json::Obj({{"name", fmt::format("{}-{}", deployment["metadata"]["name"].AsString(), hash)},
                   {"namespace", deployment["metadata"]["namespace"]},
                   {"labels", pod_template["metadata"]["labels"]},
                   {"annotations", json::Obj()},
                   {"ownerReferences", ControlledByOnly(deployment)}})},
       {"spec", std::move(out_spec)}});
}

bool SyncRevision(const json::Value& deployment, int64_t revision, ReplicaSetView& replica_set) {
  bool changed = false;
  for (const auto& [key, value] : deployment["metadata"]["annotations"].members()) {
    if (IsCopied(key)) changed |= replica_set.SetAnnotation(key, value.Str());
  }
  const std::string before(replica_set.annotation(kRevisionAnnotation));
  if (replica_set.revision() >= revision && !before.empty()) return changed;
  replica_set.SetAnnotation(kRevisionAnnotation, fmt::format("{}", revision));
  if (!before.empty()) {
    replica_set.SetAnnotation(
        kRevisionHistoryAnnotation,
        WithRevision(replica_set.annotation(kRevisionHistoryAnnotation), before));
  }
  return true;
}

int64_t SumOfReplicas(const std::vector<ReplicaSetView*>& replica_sets) {
  int64_t sum = 0;
  for (const ReplicaSetView* view : replica_sets) sum += view->replicas();
  return sum;
}

int64_t SumOfAvailable(const std::vector<ReplicaSetView*>& replica_sets) {
  int64_t sum = 0;
  for (const ReplicaSetView* view : replica_sets) sum += view->available();
  return sum;
}

int64_t SumOfLasting(const std::vector<ReplicaSetView*>& replica_sets) {
  int64_t sum = 0;
  for (const ReplicaSetView* view : replica_sets) sum += view->lasting();
  return sum;
}

std::vector<ReplicaSetView*> ActiveOf(const std::vector<ReplicaSetView*>& replica_sets) {
  std::vector<ReplicaSetView*> active;
  for (ReplicaSetView* view : replica_sets) {
    if (view->replicas() > 0) active.push_back(view);
  }
  return active;
}

void SortByCreation(std::vector<ReplicaSetView*>& replica_sets) {
  const auto created = [](const ReplicaSetView* view) {
    // One that was made in this pass has no time yet and is the newest.
    return std::tuple(view->created, view->object["metadata"]["creationTimestamp"].AsString(),
                      view->object["metadata"]["name"].AsString());
  };
  std::sort(
      replica_sets.begin(), replica_sets.end(),
      [&](const ReplicaSetView* a, const ReplicaSetView* b) { return created(a) < created(b); });
}

void ScaleInProportion(const DeploymentSpec& spec, int64_t replicas_before,
                       std::vector<ReplicaSetView*> active) {
  const int64_t allowed = spec.replicas > 0 ? spec.replicas + spec.max_surge : 0;
  const int64_t to_add = allowed - SumOfReplicas(active);
  // The largest first; of equals the newest grows first and the oldest shrinks first.
  SortByCreation(active);
  if (to_add > 0) std::reverse(active.begin(), active.end());
  std::stable_sort(active.begin(), active.end(),
                   [](const auto* a, const auto* b) { return a->replicas() > b->replicas(); });
  std::vector<int64_t> sizes;
  int64_t added = 0;
  for (const ReplicaSetView* view : active) {
    int64_t change = 0;
    if (to_add != 0 && view->replicas() > 0 && added != to_add) {
      const int64_t share = ShareOf(*view, spec, replicas_before);
      change = to_add > 0 ? std::min(share, to_add - added) : std::max(share, to_add - added);
    }
    sizes.push_back(view->replicas() + change);
    added += change;
  }
  for (size_t i = 0; i < active.size(); ++i) {
    if (i == 0 && to_add != 0) sizes[i] = std::max<int64_t>(sizes[i] + to_add - added, 0);
    active[i]->SetReplicas(sizes[i]);
    active[i]->SetSizeAnnotations(spec);
  }
}

}  // namespace muster::controllers
