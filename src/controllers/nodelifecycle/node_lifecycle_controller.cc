#include "controllers/nodelifecycle/node_lifecycle_controller.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "cluster/taints.h"
#include "schema/conditions.h"

namespace muster::controllers {
namespace {

using client::Reconciled;
namespace resources = client::resources;

constexpr char kByNode[] = "nodelifecycle-node";
constexpr std::string_view kConditions[] = {"Ready", "MemoryPressure", "DiskPressure",
                                            "PIDPressure"};

std::string_view ReadyStatus(const json::Value& node) {
  return schema::FindCondition(node["status"]["conditions"], "Ready")["status"].AsString();
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

// The taint that a condition stands for while it has this status.
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
};

const Rule* RuleOf(const json::Value& taint) {
  const auto found = std::find_if(std::begin(kRules), std::end(kRules), [&](const Rule& rule) {
    return taint["key"].AsString() == rule.taint && taint["effect"].AsString() == rule.effect;
  });
  return found == std::end(kRules) ? nullptr : found;
}

bool Holds(const json::Value& node, const Rule& rule) {
  const json::Value& conditions = node["status"]["conditions"];
  return schema::FindCondition(conditions, rule.condition)["status"].AsString() == rule.status;
}

// The taints that the conditions stand for; null when they are right already.
std::optional<json::Value> CorrectedTaints(const json::Value& node, Time now) {
  json::Array taints;
  std::set<const Rule*> present;
  bool correct = true;
  for (const json::Value& taint : node["spec"]["taints"].items()) {
    const Rule* rule = RuleOf(taint);
    if (rule != nullptr && (!Holds(node, *rule) || !present.insert(rule).second)) {
      correct = false;
      continue;
    }
    taints.push_back(taint);
  }
  for (const Rule& rule : kRules) {
    if (!Holds(node, rule) || present.contains(&rule)) continue;
    correct = false;
    taints.push_back(
        json::Obj({{"key", rule.taint}, {"effect", rule.effect}, {"timeAdded", FormatTime(now)}}));
  }
  if (correct) return std::nullopt;
  return json::Value(std::move(taints));
}

// When the pod must leave a node with this taint; nullopt: it may stay for ever.
std::optional<Time> EvictionTime(const json::Value& pod, const json::Value& taint, Time now) {
  const cluster::Taint kept_away_by = cluster::ToTaint(taint);
  const Time added = ParseTime(taint["timeAdded"].AsString()).value_or(now);
  std::optional<Time> soonest;
  bool tolerated = false;
  for (const json::Value& toleration : pod["spec"]["tolerations"].items()) {
    if (!cluster::Tolerates(cluster::ToToleration(toleration), kept_away_by)) continue;
    tolerated = true;
    if (!toleration.Has("tolerationSeconds")) continue;
    const Time until = added + seconds(toleration["tolerationSeconds"].AsInt());
    if (!soonest || until < *soonest) soonest = until;
  }
  if (!tolerated) return added;
  return soonest;
}

void EvictPods(const client::Informer& pods, const json::Value& node, Time now, Reconciled& out) {
  for (const json::Value& taint : node["spec"]["taints"].items()) {
    if (RuleOf(taint) == nullptr || taint["effect"].AsString() != "NoExecute") continue;
    for (const client::ObjectKey& key : pods.Lookup(kByNode, node["metadata"]["name"].Str())) {
      const json::Value& pod = *pods.Find(key);
      if (pod["metadata"].Has("deletionTimestamp")) continue;
      const std::optional<Time> due = EvictionTime(pod, taint, now);
      if (!due) continue;
      if (now < *due) {
        out.LookAgainAt(*due);
        continue;
      }
      client::DeleteOptions options;
      options.precondition_uid = pod["metadata"]["uid"].Str();
      out.Delete({resources::kPods, key.ns, key.name, ""}, std::move(options));
      out.Event(pod, client::EventType::kNormal, "TaintManagerEviction",
                fmt::format("Marking for deletion Pod {}", key.ToString()));
    }
  }
}

// The node is no more, so nothing of the pod runs and nobody else will confirm its end.
void RemovePodsOfGoneNode(const client::Informer& pods, const client::Observations& observations,
                          const std::string& node, Reconciled& out) {
  const std::vector<client::ObjectKey> keys = pods.Lookup(kByNode, node);
  if (keys.empty()) return;
  const auto answer = observations.find(node);
  if (answer == observations.end()) {
    out.Ask(node, {resources::kNodes, "", node, ""});
    return;
  }
  if (!answer->second.IsNull()) return;  // the informer will show it
  for (const client::ObjectKey& key : keys) {
    client::DeleteOptions options;
    options.grace_period_seconds = 0;
    options.precondition_uid = (*pods.Find(key))["metadata"]["uid"].Str();
    out.Delete({resources::kPods, key.ns, key.name, ""}, std::move(options));
  }
}

}  // namespace

std::vector<client::Trigger> NodeLifecycleController::Setup(client::InformerSet& informers) {
  informers.Get(resources::kNodes, json::Fields::Whole());
  informers.Get(resources::kLeases, {{"spec", "renewTime"}});
  const json::Fields of_pods{{"spec", "nodeName"}, {"spec", "tolerations"}};
  informers.Get(resources::kPods, of_pods).AddIndex(kByNode, [](const json::Value& pod) {
    const std::string node = pod["spec"]["nodeName"].Str();
    return node.empty() ? std::vector<std::string>() : std::vector<std::string>{node};
  });
  const auto of_pod = [](const client::ObjectKey&, const json::Value& before,
                         const json::Value& after) {
    // Only a binding matters: everything else about a pod is not this controller's business.
    const std::string node = after["spec"]["nodeName"].Str();
    std::vector<client::ObjectKey> keys;
    if (!node.empty() && before["spec"]["nodeName"].AsString() != node) keys.push_back({"", node});
    return keys;
  };
  const auto of_lease = [](const client::ObjectKey& key, const json::Value&, const json::Value&) {
    std::vector<client::ObjectKey> keys;
    if (key.ns == kNodeLeaseNamespace) keys.push_back({"", key.name});
    return keys;
  };
  return {client::OnSelf(resources::kNodes),
          {resources::kLeases, of_lease},
          {resources::kPods, of_pod}};
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

Reconciled NodeLifecycleController::Reconcile(const client::View& view,
                                              const client::Observations& observations,
                                              const client::ObjectKey& key, Time now, uint64_t) {
  Reconciled out;
  // Nobody was heard for so long: it was us who stopped, or the clock was set. Silence counts from
  // now.
  if (now - last_pass_ > 2 * kNodeMonitorGracePeriod) heartbeats_.clear();
  last_pass_ = now;
  const client::Informer& pods = view.Of(resources::kPods);
  const json::Value* node = view.Of(resources::kNodes).Find(key);
  if (node == nullptr) {
    heartbeats_.erase(key.name);
    RemovePodsOfGoneNode(pods, observations, key.name, out);
    return out;
  }
  const json::Value* lease =
      view.Of(resources::kLeases).Find({std::string(kNodeLeaseNamespace), key.name});
  if (lease == nullptr) return out;
  const Time due = LastHeard(key.name, *lease, now) + kNodeMonitorGracePeriod;
  const bool known = ReadyStatus(*node) != "Unknown" && !ReadyStatus(*node).empty();
  if (now < due) {
    out.LookAgainAt(due);
  } else if (known) {
    out.UpdateStatus({resources::kNodes, "", key.name, ""}, WithUnknownConditions(*node, now));
    out.Event(*node, client::EventType::kNormal, "NodeNotReady",
              fmt::format("Node {} status is now: NodeNotReady", key.name));
    return out;  // the taints follow from what the informer shows then
  }
  if (std::optional<json::Value> taints = CorrectedTaints(*node, now)) {
    out.Update({resources::kNodes, "", key.name, ""},
               node->SetPath({"spec", "taints"}, std::move(*taints)));
    return out;
  }
  EvictPods(pods, *node, now, out);
  return out;
}

}  // namespace muster::controllers
