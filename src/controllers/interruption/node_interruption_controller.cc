#include "controllers/interruption/node_interruption_controller.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "cluster/interruption.h"
#include "cluster/taints.h"
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

constexpr char kMirrorAnnotation[] = "kubernetes.io/config.mirror";
constexpr int64_t kDefaultGraceSeconds = 30;
constexpr size_t kMaxShown = 64;  // bytes of an annotation in an event

bool IsOurTaint(const json::Value& taint) {
  return taint["key"].AsString() == cluster::kInterruptedTaint;
}

bool IsTainted(const json::Value& node) {
  return std::ranges::any_of(node["spec"]["taints"].items(), IsOurTaint);
}

bool IsSimulated(const json::Value& node) {
  return node["metadata"]["labels"][cluster::kSimulatedNodeLabel].AsString() == "true";
}

const json::Value& ConditionOf(const json::Value& node) {
  return schema::FindCondition(node["status"]["conditions"], cluster::kInterruptedCondition);
}

json::Value WithoutTaint(const json::Value& node) {
  json::Array taints;
  for (const json::Value& taint : node["spec"]["taints"].items()) {
    if (!IsOurTaint(taint)) taints.push_back(taint);
  }
  return node.SetPath({"spec", "taints"}, json::Value(std::move(taints)));
}

const json::Value& DeadlineText(const json::Value& node) {
  return node["metadata"]["annotations"][cluster::kInterruptionDeadline];
}

bool HasUnreadableNotice(const json::Value& node) {
  return !DeadlineText(node).IsNull() && !cluster::InterruptionDeadline(node);
}

// Whoever wrote it believes that the node is emptied.
void TellUnreadable(const json::Value& node, Reconciled& out) {
  out.Event(node, client::EventType::kWarning, "InvalidInterruptionDeadline",
            fmt::format("Node {}: annotation {}: {:?} is not a time that is known here, so no pod "
                        "is told to go: expected RFC 3339, such as 2026-01-31T12:00:00Z",
                        node["metadata"]["name"].AsString(), cluster::kInterruptionDeadline,
                        DeadlineText(node).AsString().substr(0, kMaxShown)));
}

void WriteCondition(const json::Value& node, std::string_view status, std::string_view reason,
                    std::string_view message, Time now, Reconciled& out) {
  const json::Value& before = ConditionOf(node);
  if (before["status"].AsString() == status && before["message"].AsString() == message) return;
  const json::Value condition =
      json::Obj({{"type", cluster::kInterruptedCondition},
                 {"status", status},
                 {"reason", reason},
                 {"message", message},
                 {"lastHeartbeatTime", FormatTime(now)},
                 {"lastTransitionTime", schema::TransitionTime(before, status, now)}});
  out.PatchStrategic({resources::kNodes, "", node["metadata"]["name"].Str(), "status"},
                     json::Obj({{"status", json::Obj({{"conditions", json::List({condition})}})}}));
}

// The notice was taken back, or there is none.
void Restore(const json::Value& node, Time now, Reconciled& out) {
  const std::string name = node["metadata"]["name"].Str();
  const json::Value& cordoned = node["metadata"]["annotations"][cluster::kInterruptionCordoned];
  if (IsTainted(node) || !cordoned.IsNull()) {
    json::Value after = WithoutTaint(node);
    if (!cordoned.IsNull()) {
      after = after.RemovePath({"spec", "unschedulable"})
                  .RemovePath({"metadata", "annotations", cluster::kInterruptionCordoned});
    }
    out.Update({resources::kNodes, "", name, ""}, std::move(after));
  }
  if (!schema::ConditionHolds(node["status"]["conditions"], cluster::kInterruptedCondition)) return;
  WriteCondition(node, "False", "NoticeTakenBack", "The node stays", now, out);
  out.Event(node, client::EventType::kNormal, "InterruptionTakenBack",
            fmt::format("Node {} stays: the notice of its interruption was taken back", name));
}

// Taint and cordon; false while they do not stand yet.
bool IsClosed(const json::Value& node, Time deadline, Time now, Reconciled& out) {
  const bool cordoned = node["spec"]["unschedulable"].AsBool();
  if (IsTainted(node) && cordoned) return true;
  const std::string name = node["metadata"]["name"].Str();
  json::Value after = node;
  if (!IsTainted(node)) {
    const json::Value taint = json::Obj({{"key", cluster::kInterruptedTaint},
                                         {"effect", "NoSchedule"},
                                         {"timeAdded", FormatTime(now)}});
    after = after.SetPath({"spec", "taints"}, node["spec"]["taints"].Append(taint));
    out.Event(node, client::EventType::kWarning, "SpotInterrupted",
              fmt::format("Node {} is taken back at {}: its pods are told to end, and go elsewhere",
                          name, FormatTime(deadline)));
  }
  if (!cordoned) {
    after = after.SetPath({"spec", "unschedulable"}, true)
                .SetPath({"metadata", "annotations", cluster::kInterruptionCordoned}, "true");
  }
  out.Update({resources::kNodes, "", name, ""}, std::move(after));
  return false;
}

// The deadline is over.
void End(const client::Informer& pods, const json::Value& node, Reconciled& out) {
  const std::string name = node["metadata"]["name"].Str();
  client::DeleteOptions options;
  if (IsSimulated(node)) {
    options.precondition_uid = node["metadata"]["uid"].Str();
    out.Delete({resources::kNodes, "", name, ""}, std::move(options));
    return;
  }
  for (const ObjectKey& key : PodsOn(pods, name)) {
    const json::Value& pod = *pods.Find(key);
    const bool told = pod["metadata"].Has("deletionTimestamp") &&
                      pod["metadata"]["deletionGracePeriodSeconds"].AsInt() <= 1;
    if (told || schema::IsFinalPhase(pod["status"]["phase"].AsString())) continue;
    options = {};
    options.grace_period_seconds = 1;
    options.precondition_uid = pod["metadata"]["uid"].Str();
    out.Delete({resources::kPods, key.ns, key.name, ""}, std::move(options));
  }
}

// It goes with the node, or does not mind.
bool StaysToTheEnd(const json::Value& pod) {
  if (client::ControllerOf(pod)["kind"].AsString() == "DaemonSet") return true;
  if (pod["metadata"]["annotations"].Has(kMirrorAnnotation)) return true;
  const cluster::Taint taint{std::string(cluster::kInterruptedTaint), "",
                             cluster::TaintEffect::kNoSchedule};
  return cluster::Tolerates(cluster::ToTolerations(pod["spec"]["tolerations"]), taint);
}

// Through its budget, with no more grace than there is.
void Tell(const json::Value& pod, Time deadline, Time now, Reconciled& out) {
  const ObjectKey key = client::KeyOf(pod);
  const std::string node = pod["spec"]["nodeName"].Str();
  if (!schema::ConditionHolds(pod["status"]["conditions"], schema::kDisruptionTarget)) {
    const std::string message =
        fmt::format("Node {} is taken back at {}", node, FormatTime(deadline));
    const json::Value condition = schema::DisruptionTarget(pod, "NodeInterruption", message, now);
    out.PatchStrategic(StatusTargetOf(pod),
                       StatusPatchOf(pod, {{"conditions", json::List({condition})}}));
  }
  const int64_t left = std::chrono::duration_cast<seconds>(deadline - now).count();
  const int64_t wanted =
      pod["spec"]["terminationGracePeriodSeconds"].Int().value_or(kDefaultGraceSeconds);
  const int64_t grace = std::clamp<int64_t>(wanted, 1, std::max<int64_t>(left, 1));
  const json::Value options =
      json::Obj({{"gracePeriodSeconds", grace},
                 {"preconditions", json::Obj({{"uid", pod["metadata"]["uid"]}})}});
  out.Create({resources::kPods, key.ns, key.name, "eviction"},
             json::Obj({{"apiVersion", "policy/v1"},
                        {"kind", "Eviction"},
                        {"metadata", json::Obj({{"name", key.name}, {"namespace", key.ns}})},
                        {"deleteOptions", options}}));
  out.Event(pod, client::EventType::kNormal, "NodeInterruption",
            fmt::format("Node {} is taken back at {}: the pod has {} s to end", node,
                        FormatTime(deadline), grace));
}

void ReconcilePod(const json::Value& pod, const client::Informer& nodes, Time now,
                  Reconciled& out) {
  const json::Value* node = nodes.Find({"", pod["spec"]["nodeName"].Str()});
  if (node == nullptr || !IsTainted(*node)) return;
  const std::optional<Time> deadline = cluster::InterruptionDeadline(*node);
  if (!deadline || now >= *deadline) return;
  if (pod["metadata"].Has("deletionTimestamp") || StaysToTheEnd(pod) ||
      schema::IsFinalPhase(pod["status"]["phase"].AsString())) {
    return;
  }
  Tell(pod, *deadline, now, out);
}

}  // namespace

std::vector<client::Trigger> NodeInterruptionController::Setup(client::InformerSet& informers) {
  informers.Get(resources::kNodes, json::Fields::Whole());
  client::Informer& pods =
      informers.Get(resources::kPods, {{"metadata", "annotations", kMirrorAnnotation},
                                       {"metadata", "deletionGracePeriodSeconds"},
                                       {"spec", "nodeName"},
                                       {"spec", "tolerations"},
                                       {"spec", "terminationGracePeriodSeconds"},
                                       {"status", "phase"},
                                       {"status", "conditions"}});
  IndexByNode(pods);
  informers.Get(resources::kPodDisruptionBudgets, {{"status", "disruptionsAllowed"}});
  const auto of_node = [this, &pods](const ObjectKey& key, const json::Value& before,
                                     const json::Value& after) {
    const bool had = interrupted_.contains(key.name);
    const bool has = cluster::InterruptionDeadline(after).has_value();
    if (has) interrupted_.insert(key.name);
    if (!has) interrupted_.erase(key.name);
    std::vector<ObjectKey> keys;
    if (HasUnreadableNotice(after) && DeadlineText(before) != DeadlineText(after)) {
      keys.push_back(key);
      return keys;
    }
    if (!had && !has && !IsTainted(after)) return keys;
    keys = PodsOn(pods, key.name);
    if (before["metadata"]["annotations"] == after["metadata"]["annotations"] &&
        before["spec"] == after["spec"]) {
      keys.clear();
    }
    keys.push_back(key);
    return keys;
  };
  const auto of_pod = [this](const ObjectKey& key, const json::Value&, const json::Value& after) {
    const std::string node = after["spec"]["nodeName"].Str();
    if (!interrupted_.contains(node)) return std::vector<ObjectKey>();
    return std::vector<ObjectKey>{key, {"", node}};
  };
  // A budget that allows more lets the next one go.
  const auto of_budget = [this, &pods](const ObjectKey& key, const json::Value&,
                                       const json::Value&) {
    std::vector<ObjectKey> keys;
    for (const std::string& node : interrupted_) {
      for (ObjectKey& pod : PodsOn(pods, node)) {
        if (pod.ns == key.ns) keys.push_back(std::move(pod));
      }
    }
    return keys;
  };
  return {{resources::kNodes, of_node},
          {resources::kPods, of_pod},
          {resources::kPodDisruptionBudgets, of_budget}};
}

Reconciled NodeInterruptionController::Reconcile(const client::View& view,
                                                 const client::Observations&, const ObjectKey& key,
                                                 Time now, uint64_t) {
  Reconciled out;
  const client::Informer& pods = view.Of(resources::kPods);
  const client::Informer& nodes = view.Of(resources::kNodes);
  if (!key.ns.empty()) {
    if (const json::Value* pod = pods.Find(key)) ReconcilePod(*pod, nodes, now, out);
    return out;
  }
  const json::Value* node = nodes.Find(key);
  if (node == nullptr) return out;
  const std::optional<Time> deadline = cluster::InterruptionDeadline(*node);
  if (!deadline) {
    if (HasUnreadableNotice(*node)) TellUnreadable(*node, out);
    Restore(*node, now, out);
    return out;
  }
  const bool closed = IsClosed(*node, *deadline, now, out);
  if (now < *deadline) {
    WriteCondition(*node, "True", "InterruptionNotice",
                   fmt::format("The node is taken back at {}", FormatTime(*deadline)), now, out);
    out.LookAgainAt(*deadline);
    return out;
  }
  WriteCondition(*node, "True", "TakenBack",
                 fmt::format("The node was taken back at {}", FormatTime(*deadline)), now, out);
  if (closed) End(pods, *node, out);
  return out;
}

}  // namespace muster::controllers
