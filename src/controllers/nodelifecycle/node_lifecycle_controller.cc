#include "controllers/nodelifecycle/node_lifecycle_controller.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "cluster/taints.h"
#include "controllers/pods/status_patch.h"
#include "controllers/pods/pods_by_node.h"
#include "schema/conditions.h"

namespace muster::controllers {
namespace {

using client::Reconciled;
namespace resources = client::resources;

// Nodes by whether they are Ready, in all and by zone.
constexpr char kReadyIndex[] = "nodelifecycle-ready";
constexpr char kReadyNodes[] = "ready";
constexpr char kOtherNodes[] = "other";
constexpr std::string_view kConditions[] = {"Ready", "MemoryPressure", "DiskPressure",
                                            "PIDPressure"};

std::string_view ReadyStatus(const json::Value& node) {
  return schema::FindCondition(node["status"]["conditions"], "Ready")["status"].AsString();
}

bool IsReady(const json::Value& node) { return ReadyStatus(node) == "True"; }

std::string ZoneOf(const json::Value& node) {
  const json::Value& labels = node["metadata"]["labels"];
  return fmt::format("{}/{}", labels["topology.kubernetes.io/region"].AsString(),
                     labels["topology.kubernetes.io/zone"].AsString());
}

// Every condition that the node would report is unknown now.
json::Value WithUnknownConditions(const json::Value& node, Time now) {
  json::Array conditions;
  for (const json::Value& condition : node["status"]["conditions"].items()) {
    const bool reported = std::find(std::begin(kConditions), std::end(kConditions),
                                    condition["type"].AsString()) != std::end(kConditions);
    if (!reported || condition["status"].AsString() == "Unknown") {
      conditions.push_back(condition);
      continue;
    }
    conditions.push_back(condition.Set("status", "Unknown")
                             .Set("reason", "NodeStatusUnknown")
                             .Set("message", "Kubelet stopped posting node status.")
                             .Set("lastTransitionTime", FormatTime(now)));
  }
  return node.SetPath({"status", "conditions"}, json::Value(std::move(conditions)));
}

// The taint that a condition stands for while it has this status; without a condition: that
// spec.unschedulable stands for.
struct Rule {
  std::string_view condition, status, taint, effect;
};
constexpr Rule kRules[] = {
    {"Ready", "Unknown", kUnreachableTaint, "NoSchedule"},
    {"Ready", "Unknown", kUnreachableTaint, "NoExecute"},
    {"Ready", "False", kNotReadyTaint, "NoSchedule"},
    {"Ready", "False", kNotReadyTaint, "NoExecute"},
    {"MemoryPressure", "True", kMemoryPressureTaint, "NoSchedule"},
    {"DiskPressure", "True", kDiskPressureTaint, "NoSchedule"},
    {"PIDPressure", "True", kPidPressureTaint, "NoSchedule"},
    {"NetworkUnavailable", "True", kNetworkUnavailableTaint, "NoSchedule"},
    {"", "", cluster::kUnschedulableTaint, "NoSchedule"},
};
bool Evicts(const Rule& rule) { return rule.effect == "NoExecute"; }

const Rule* RuleOf(const json::Value& taint) {
  const auto found = std::find_if(std::begin(kRules), std::end(kRules), [&](const Rule& rule) {
    return taint["key"].AsString() == rule.taint && taint["effect"].AsString() == rule.effect;
  });
  return found == std::end(kRules) ? nullptr : found;
}

bool Holds(const json::Value& node, const Rule& rule) {
  if (rule.condition.empty()) return node["spec"]["unschedulable"].AsBool();
  const json::Value& conditions = node["status"]["conditions"];
  return schema::FindCondition(conditions, rule.condition)["status"].AsString() == rule.status;
}

// The taints that the conditions stand for; null when they are right already. `may_evict` is asked
// only if the node would begin to be emptied.
std::optional<json::Value> CorrectedTaints(const json::Value& node, bool none_is_ready, Time now,
                                           const std::function<bool()>& may_evict) {
  json::Array taints;
  std::set<const Rule*> present;
  bool correct = true;
  bool evicts = false;
  for (const json::Value& taint : node["spec"]["taints"].items()) {
    const Rule* rule = RuleOf(taint);
    const bool stops = rule != nullptr && Evicts(*rule) && none_is_ready;
    if (rule != nullptr && Evicts(*rule)) evicts = true;
    if (rule != nullptr && (stops || !Holds(node, *rule) || !present.insert(rule).second)) {
      correct = false;
      continue;
    }
    taints.push_back(taint);
  }
  for (const Rule& rule : kRules) {
    if (!Holds(node, rule) || present.contains(&rule)) continue;
    // A node that is being emptied goes on being emptied when it is not ready in another way.
    if (Evicts(rule) && (none_is_ready || (!evicts && !may_evict()))) continue;
    correct = false;
    taints.push_back(
        json::Obj({{"key", rule.taint}, {"effect", rule.effect}, {"timeAdded", FormatTime(now)}}));
  }
  if (correct) return std::nullopt;
  return json::Value(std::move(taints));
}

// Pods of a node that is not Ready get no requests. A node that talks may say once more that a pod
// of it is Ready: that is newer than the node's condition, and stays.
void MarkPodsNotReady(const client::Informer& pods, const json::Value& node, Time now,
                      Reconciled& out) {
  const json::Value& of_node = schema::FindCondition(node["status"]["conditions"], "Ready");
  if (of_node.IsNull() || of_node["status"].AsString() == "True") return;
  const bool silent = of_node["status"].AsString() == "Unknown";
  const auto since = ParseTime(of_node["lastTransitionTime"].AsString());
  for (const client::ObjectKey& key : PodsOn(pods, node["metadata"]["name"].Str())) {
    const json::Value& pod = *pods.Find(key);
    const json::Value& ready = schema::FindCondition(pod["status"]["conditions"], "Ready");
    if (ready["status"].AsString() != "True") continue;
    if (!silent && since < ParseTime(ready["lastTransitionTime"].AsString())) continue;
    const json::Value condition =
        ready.Set("status", "False").Set("lastTransitionTime", FormatTime(now));
    json::Value patch = StatusPatchOf(pod, {{"conditions", json::List({condition})}});
    // What the node says meanwhile is newer.
    patch = patch.SetPath({"metadata", "resourceVersion"}, pod["metadata"]["resourceVersion"]);
    out.PatchStrategic(StatusTargetOf(pod), std::move(patch));
    out.Event(pod, client::EventType::kWarning, "NodeNotReady", "Node is not ready");
  }
}

}  // namespace

std::vector<client::Trigger> NodeLifecycleController::Setup(client::InformerSet& informers) {
  client::Informer& nodes = informers.Get(resources::kNodes, json::Fields::Whole());
  nodes.AddIndex(kReadyIndex, [](const json::Value& node) {
    const std::string which = IsReady(node) ? kReadyNodes : kOtherNodes;
    return std::vector<std::string>{which, ZoneOf(node) + which};
  });
  informers.Get(resources::kLeases, {{"spec", "renewTime"}});
  IndexByNode(informers.Get(resources::kPods, {{"spec", "nodeName"}, {"status", "conditions"}}));
  // The others begin to be emptied, or stop, with the first that is Ready and the last.
  const auto of_node = [&nodes](const client::ObjectKey& key, const json::Value& before,
                                const json::Value& after) {
    std::vector<client::ObjectKey> keys = {key};
    if (IsReady(before) != IsReady(after) && nodes.LookupCount(kReadyIndex, kReadyNodes) <= 1) {
      for (client::ObjectKey& other : nodes.Lookup(kReadyIndex, kOtherNodes))
        keys.push_back(std::move(other));
    }
    return keys;
  };
  const auto of_pod = [](const client::ObjectKey&, const json::Value& before,
                         const json::Value& after) {
    const auto is_ready = [](const json::Value& pod) {
      return schema::ConditionHolds(pod["status"]["conditions"], "Ready");
    };
    return is_ready(after) && !is_ready(before) ? NodeOf(after) : std::vector<client::ObjectKey>();
  };
  const auto of_lease = [](const client::ObjectKey& key, const json::Value&, const json::Value&) {
    std::vector<client::ObjectKey> keys;
    if (key.ns == kNodeLeaseNamespace) keys.push_back({"", key.name});
    return keys;
  };
  return {{resources::kNodes, of_node}, {resources::kLeases, of_lease}, {resources::kPods, of_pod}};
}

Time NodeLifecycleController::LastHeard(const std::string& node, const json::Value& lease,
                                        Time now) {
  Heartbeat& heartbeat = heartbeats_[node];
  const std::string_view renewed = lease["spec"]["renewTime"].AsString();
  if (heartbeat.renew_time != renewed || heartbeat.seen_at == Time{}) {
    heartbeat = {std::string(renewed), now};
  }
  // A clock that was set back must not give a dead node the hours that it was ahead.
  heartbeat.seen_at = std::min(heartbeat.seen_at, now);
  return heartbeat.seen_at;
}

bool NodeLifecycleController::TakeEvictionTurn(const client::Informer& nodes,
                                               const json::Value& node, Time now, Reconciled& out) {
  const std::string zone = ZoneOf(node);
  const size_t ready = nodes.LookupCount(kReadyIndex, zone + kReadyNodes);
  const size_t others = nodes.LookupCount(kReadyIndex, zone + kOtherNodes);
  const bool unhealthy =
      ready > 0 && others > 2 && others * 100 >= (ready + others) * kUnhealthyZoneShare;
  if (unhealthy && ready + others <= kLargeZoneNodes) {
    out.LookAgainAt(now + kNodeMonitorPeriod);
    return false;
  }
  const Duration period = unhealthy ? kSlowEvictionPeriod : kEvictionPeriod;
  const auto last = last_turn_.find(zone);
  if (last != last_turn_.end()) {
    last->second = std::min(last->second, now);  // the clock was set back
    if (now < last->second + period) {
      out.LookAgainAt(last->second + period);
      return false;
    }
  }
  last_turn_[zone] = now;
  return true;
}

Reconciled NodeLifecycleController::Reconcile(const client::View& view, const client::Observations&,
                                              const client::ObjectKey& key, Time now, uint64_t) {
  Reconciled out;
  // Nobody was heard for so long: it was us who stopped, or the clock was set. Silence counts from
  // now.
  if (now - last_pass_ > 2 * kNodeMonitorGracePeriod) heartbeats_.clear();
  last_pass_ = now;
  const client::Informer& nodes = view.Of(resources::kNodes);
  const json::Value* node = nodes.Find(key);
  if (node == nullptr) {
    heartbeats_.erase(key.name);
    return out;
  }
  const json::Value* lease =
      view.Of(resources::kLeases).Find({std::string(kNodeLeaseNamespace), key.name});
  if (lease != nullptr) {
    const Time due = LastHeard(key.name, *lease, now) + kNodeMonitorGracePeriod;
    const bool known = ReadyStatus(*node) != "Unknown" && !ReadyStatus(*node).empty();
    if (now < due) {
      out.LookAgainAt(due);
    } else if (known) {
      out.UpdateStatus({resources::kNodes, "", key.name, ""}, WithUnknownConditions(*node, now));
      out.Event(*node, client::EventType::kNormal, "NodeNotReady",
                fmt::format("Node {} status is now: NodeNotReady", key.name));
      return out;  // the rest follows from what the informer shows then
    }
  }
  MarkPodsNotReady(view.Of(resources::kPods), *node, now, out);
  const bool none_is_ready = nodes.LookupCount(kReadyIndex, kReadyNodes) == 0;
  std::optional<json::Value> taints = CorrectedTaints(
      *node, none_is_ready, now, [&] { return TakeEvictionTurn(nodes, *node, now, out); });
  if (taints) {
    out.Update({resources::kNodes, "", key.name, ""},
               node->SetPath({"spec", "taints"}, std::move(*taints)));
  }
  return out;
}

}  // namespace muster::controllers
