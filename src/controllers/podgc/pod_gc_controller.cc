#include "controllers/podgc/pod_gc_controller.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "controllers/pods/status_patch.h"
#include "controllers/pods/pods_by_node.h"
#include "schema/conditions.h"
#include "schema/disruption_target.h"
#include "schema/pod_phase.h"

namespace muster::controllers {
namespace {

using client::ObjectKey;
using client::Reconciled;
namespace resources = client::resources;

constexpr char kTerminatedIndex[] = "podgc-terminated";
constexpr char kAll[] = "all";

bool IsTerminated(const json::Value& pod) {
  return schema::IsFinalPhase(pod["status"]["phase"].AsString());
}

bool IsDeleting(const json::Value& pod) { return pod["metadata"].Has("deletionTimestamp"); }

// Only its finalizers keep it.
bool IsGoing(const json::Value& pod) {
  return IsDeleting(pod) && pod["metadata"]["deletionGracePeriodSeconds"].AsInt() == 0;
}

// `condition`: said of a pod that had not ended; null for none.
void FailAndDelete(const json::Value& pod, json::Value condition, Reconciled& out) {
  if (!IsTerminated(pod)) {
    json::Object status = {{"phase", "Failed"}};
    if (!condition.IsNull()) status.emplace_back("conditions", json::List({std::move(condition)}));
    out.PatchStrategic(StatusTargetOf(pod), StatusPatchOf(pod, std::move(status)));
  }
  if (IsGoing(pod)) return;
  const ObjectKey key = client::KeyOf(pod);
  client::DeleteOptions options;
  options.grace_period_seconds = 0;
  options.precondition_uid = pod["metadata"]["uid"].Str();
  out.Delete({resources::kPods, key.ns, key.name, ""}, std::move(options));
}

bool IsOutOfService(const json::Value& node) {
  const json::Array& taints = node["spec"]["taints"].items();
  return std::any_of(taints.begin(), taints.end(),
                     [](const json::Value& taint) {
                       return taint["key"].AsString() == kOutOfServiceTaint;
                     }) &&
         !schema::ConditionHolds(node["status"]["conditions"], "Ready");
}

void CollectOfDeadNode(const client::Informer& pods, const std::string& node, Reconciled& out) {
  for (const ObjectKey& key : PodsOn(pods, node)) {
    const json::Value& pod = *pods.Find(key);
    if (IsDeleting(pod) && !(IsGoing(pod) && IsTerminated(pod))) FailAndDelete(pod, {}, out);
  }
}

}  // namespace

std::vector<client::Trigger> PodGcController::Setup(client::InformerSet& informers) {
  informers.Get(resources::kNodes, {{"spec", "taints"}, {"status", "conditions"}});
  client::Informer& pods =
      informers.Get(resources::kPods, {{"metadata", "creationTimestamp"},
                                       {"metadata", "deletionGracePeriodSeconds"},
                                       {"spec", "nodeName"},
                                       {"status", "phase"},
                                       {"status", "reason"},
                                       {"status", "conditions"}});
  IndexByNode(pods);
  pods.AddIndex(kTerminatedIndex, [](const json::Value& pod) {
    return IsTerminated(pod) ? std::vector<std::string>{kAll} : std::vector<std::string>();
  });
  const auto of_pod = [](const ObjectKey& key, const json::Value& before,
                         const json::Value& after) {
    std::vector<ObjectKey> keys;
    if (after.IsNull()) return keys;
    const bool news = before["spec"]["nodeName"] != after["spec"]["nodeName"] ||
                      IsDeleting(before) != IsDeleting(after);
    if (news) keys = NodeOf(after);
    if (IsDeleting(after) && after["spec"]["nodeName"].AsString().empty()) keys.push_back(key);
    if (IsTerminated(after) && !IsTerminated(before)) keys.emplace_back();
    return keys;
  };
  return {client::OnSelf(resources::kNodes), {resources::kPods, of_pod}};
}

// Evicted ones first, then the oldest.
void PodGcController::CollectTerminated(const client::Informer& pods, Time now, Reconciled& out) {
  if (pods.LookupCount(kTerminatedIndex, kAll) <= max_terminated_) return;
  if (now >= last_sweep_ && now < last_sweep_ + kPodGcPeriod)
    return out.LookAgainAt(last_sweep_ + kPodGcPeriod);
  last_sweep_ = now;
  std::vector<const json::Value*> all;
  for (const ObjectKey& key : pods.Lookup(kTerminatedIndex, kAll)) all.push_back(pods.Find(key));
  const auto rank = [](const json::Value* pod) {
    const bool evicted = (*pod)["status"]["reason"].AsString() == "Evicted";
    return std::tuple(!evicted, (*pod)["metadata"]["creationTimestamp"].AsString(),
                      (*pod)["metadata"]["name"].AsString());
  };
  const auto surplus = static_cast<ptrdiff_t>(all.size() - max_terminated_);
  std::nth_element(all.begin(), all.begin() + surplus - 1, all.end(),
                   [&](const auto* a, const auto* b) { return rank(a) < rank(b); });
  for (ptrdiff_t i = 0; i < surplus; ++i) {
    if (!IsGoing(*all[static_cast<size_t>(i)]))
      FailAndDelete(*all[static_cast<size_t>(i)], {}, out);
  }
}

// The node is no more, so nothing of the pod runs and nobody else will confirm its end.
void PodGcController::CollectOfMissingNode(const client::Informer& pods,
                                           const client::Observations& observations,
                                           const std::string& node, Time now, Reconciled& out) {
  const std::vector<ObjectKey> keys = PodsOn(pods, node);
  if (keys.empty()) {
    missing_since_.erase(node);
    return;
  }
  Time& since = missing_since_.try_emplace(node, now).first->second;
  since = std::min(since, now);  // the clock was set back
  if (now < since + kNodeQuarantine) return out.LookAgainAt(since + kNodeQuarantine);
  const auto answer = observations.find(node);
  if (answer == observations.end()) return out.Ask(node, {resources::kNodes, "", node, ""});
  if (!answer->second.IsNull()) return;  // the informer will show it
  for (const ObjectKey& key : keys) {
    const json::Value& pod = *pods.Find(key);
    if (IsGoing(pod) && IsTerminated(pod)) continue;
    FailAndDelete(pod,
                  schema::DisruptionTarget(pod, "DeletionByPodGC", "PodGC: node no longer exists",
                                           now),
                  out);
    out.Event(pod, client::EventType::kWarning, "DeletionByPodGC",
              fmt::format("Removing Pod {}: its node {} does not exist", key.ToString(), node));
  }
}

Reconciled PodGcController::Reconcile(const client::View& view,
                                      const client::Observations& observations,
                                      const ObjectKey& key, Time now, uint64_t) {
  Reconciled out;
  const client::Informer& pods = view.Of(resources::kPods);
  if (key.name.empty()) {
    CollectTerminated(pods, now, out);
  } else if (!key.ns.empty()) {
    const json::Value* pod = pods.Find(key);
    const bool lost =
        pod != nullptr && IsDeleting(*pod) && (*pod)["spec"]["nodeName"].AsString().empty();
    if (lost && !(IsGoing(*pod) && IsTerminated(*pod))) FailAndDelete(*pod, {}, out);
  } else if (const json::Value* node = view.Of(resources::kNodes).Find(key); node == nullptr) {
    CollectOfMissingNode(pods, observations, key.name, now, out);
  } else {
    missing_since_.erase(key.name);
    if (IsOutOfService(*node)) CollectOfDeadNode(pods, key.name, out);
  }
  return out;
}

}  // namespace muster::controllers
