#include "controllers/tainteviction/taint_eviction_controller.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/bounded_seconds.h"
#include "cluster/taints.h"
#include "controllers/pods/pods_by_node.h"
#include "controllers/pods/status_patch.h"
#include "schema/disruption_target.h"

namespace muster::controllers {
namespace {

using client::Reconciled;
namespace resources = client::resources;

struct TimedTaint {
  cluster::Taint taint;
  Time since{};
};

// When the pod must leave a node with these taints; nullopt: it may stay for ever.
std::optional<Time> EvictionTime(const json::Value& pod, const std::vector<TimedTaint>& taints) {
  std::optional<Time> soonest;
  for (const TimedTaint& taint : taints) {
    const json::Array& tolerations = pod["spec"]["tolerations"].items();
    // Of several that match a taint the first one counts, as upstream.
    const auto match =
        std::find_if(tolerations.begin(), tolerations.end(), [&](const json::Value& toleration) {
          return cluster::Tolerates(cluster::ToToleration(toleration), taint.taint);
        });
    std::optional<Time> until;
    if (match == tolerations.end()) {
      until = taint.since;
    } else if (const auto stays = (*match)["tolerationSeconds"].Int()) {
      until = taint.since + BoundedSeconds(std::max<int64_t>(*stays, 0));
    }
    if (until && (!soonest || *until < *soonest)) soonest = until;
  }
  return soonest;
}

void Evict(const json::Value& pod, Time now, Reconciled& out) {
  const client::ObjectKey key = client::KeyOf(pod);
  const json::Value condition = schema::DisruptionTarget(
      pod, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint", now);
  out.PatchStrategic(StatusTargetOf(pod),
                     StatusPatchOf(pod, {{"conditions", json::List({condition})}}));
  client::DeleteOptions options;
  options.precondition_uid = pod["metadata"]["uid"].Str();
  out.Delete({resources::kPods, key.ns, key.name, ""}, std::move(options));
  out.Event(pod, client::EventType::kNormal, "TaintManagerEviction",
            fmt::format("Marking for deletion Pod {}", key.ToString()));
}

void TellThatItStays(const json::Value& pod, Reconciled& out) {
  out.Event(pod, client::EventType::kNormal, "TaintManagerEviction",
            fmt::format("Cancelling deletion of Pod {}", client::KeyOf(pod).ToString()));
}

}  // namespace

std::vector<client::Trigger> TaintEvictionController::Setup(client::InformerSet& informers) {
  informers.Get(resources::kNodes, {{"spec", "taints"}});
  IndexByNode(informers.Get(
      resources::kPods, {{"spec", "nodeName"}, {"spec", "tolerations"}, {"status", "conditions"}}));
  const auto of_pod = [](const client::ObjectKey&, const json::Value& before,
                         const json::Value& after) {
    const json::Value& was = before["spec"];
    const json::Value& is = after["spec"];
    if (was["nodeName"] == is["nodeName"] && was["tolerations"] == is["tolerations"])
      return std::vector<client::ObjectKey>();
    return NodeOf(after);
  };
  return {client::OnSelf(resources::kNodes), {resources::kPods, of_pod}};
}

Reconciled TaintEvictionController::Reconcile(const client::View& view, const client::Observations&,
                                              const client::ObjectKey& key, Time now, uint64_t) {
  Reconciled out;
  const json::Value* node = view.Of(resources::kNodes).Find(key);
  NodeState& known = nodes_[key.name];
  NodeState next;
  std::vector<TimedTaint> taints;
  if (node != nullptr) {
    for (const json::Value& taint : (*node)["spec"]["taints"].items()) {
      if (taint["effect"].AsString() != "NoExecute") continue;
      const std::string name = taint["key"].Str() + "=" + taint["value"].Str();
      const auto seen = known.seen.find(name);
      // A clock that was set back must not give a pod the hours that it was ahead.
      next.seen[name] = seen == known.seen.end() ? now : std::min(seen->second, now);
      const std::optional<Time> added = ParseTime(taint["timeAdded"].AsString());
      taints.push_back({cluster::ToTaint(taint), added.value_or(next.seen[name])});
    }
  }
  if (!taints.empty() || !known.waiting.empty()) {
    const client::Informer& pods = view.Of(resources::kPods);
    for (const client::ObjectKey& pod_key : PodsOn(pods, key.name)) {
      const json::Value& pod = *pods.Find(pod_key);
      if (pod["metadata"].Has("deletionTimestamp")) continue;
      const std::string uid = pod["metadata"]["uid"].Str();
      const std::optional<Time> due = EvictionTime(pod, taints);
      if (!due) {
        if (known.waiting.contains(uid)) TellThatItStays(pod, out);
      } else if (now < *due) {
        next.waiting.insert(uid);
        out.LookAgainAt(*due);
      } else {
        Evict(pod, now, out);
      }
    }
  }
  if (taints.empty()) {
    nodes_.erase(key.name);
  } else {
    known = std::move(next);
  }
  return out;
}

}  // namespace muster::controllers
