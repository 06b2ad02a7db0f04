#include "autoscaler/node_claim.h"

#include <algorithm>
#include <utility>

#include "client/reconcile.h"
#include "schema/conditions.h"
#include "schema/pod_phase.h"

namespace muster::autoscaler {
namespace {

constexpr char kNodeIndex[] = "autoscaler-node";
constexpr char kMirrorAnnotation[] = "kubernetes.io/config.mirror";

json::Value In(std::string_view key, std::string_view value) {
  return json::Obj({{"key", key}, {"operator", "In"}, {"values", json::List({value})}});
}

}  // namespace

json::Value MakeNodeClaim(const NodePool& pool, const Offering& offering, const std::string& name,
                          const cluster::ResourceList& requests) {
  const std::string_view capacity = ToString(offering.capacity);
  json::Value wanted = json::Obj();
  for (const auto& [resource, amount] : requests)
    wanted = wanted.Set(resource, cluster::AmountText(resource, amount));
  const json::Value labels = json::Obj({{std::string(kNodePoolLabel), pool.name},
                                        {std::string(kInstanceTypeLabel), offering.type.name},
                                        {std::string(kCapacityTypeLabel), capacity}});
  const json::Value owner = json::Obj({{"apiVersion", "karpenter.sh/v1"},
                                       {"kind", "NodePool"},
                                       {"name", pool.name},
                                       {"uid", pool.uid},
                                       {"blockOwnerDeletion", true}});
  json::Value spec =
      json::Obj({{"requirements", json::List({In(kNodePoolLabel, pool.name),
                                              In(kInstanceTypeLabel, offering.type.name),
                                              In(kCapacityTypeLabel, capacity)})},
                 {"resources", json::Obj({{"requests", wanted}})}});
  if (!pool.taints.empty()) spec = spec.Set("taints", pool.taints);
  return json::Obj({{"apiVersion", "karpenter.sh/v1"},
                    {"kind", "NodeClaim"},
                    {"metadata", json::Obj({{"name", name},
                                            {"labels", labels},
                                            {"finalizers", json::List({kTerminationFinalizer})},
                                            {"ownerReferences", json::List({owner})}})},
                    {"spec", spec}});
}

std::string PoolOf(const json::Value& claim) {
  return claim["metadata"]["labels"][kNodePoolLabel].Str();
}

cluster::CapacityType CapacityTypeOf(const json::Value& claim) {
  return claim["metadata"]["labels"][kCapacityTypeLabel].AsString() == "spot"
             ? cluster::CapacityType::kSpot
             : cluster::CapacityType::kOnDemand;
}

const cluster::InstanceType* TypeOf(const json::Value& claim, const Catalog& catalog) {
  const std::string_view name = claim["metadata"]["labels"][kInstanceTypeLabel].AsString();
  const auto found = std::ranges::lower_bound(
      catalog, name, {}, [](const auto& type) { return std::string_view(type.name); });
  return found == catalog.end() || found->name != name ? nullptr : &*found;
}

bool IsDeleting(const json::Value& object) { return object["metadata"].Has("deletionTimestamp"); }

bool Holds(const json::Value& claim, std::string_view condition) {
  return schema::ConditionHolds(claim["status"]["conditions"], condition);
}

json::Value WithCondition(const json::Value& status, std::string_view type, bool holds,
                          std::string_view reason, std::string_view message, Time now) {
  const std::string_view truth = holds ? "True" : "False";
  const json::Value& before = schema::FindCondition(status["conditions"], type);
  if (before["status"].AsString() == truth && before["reason"].AsString() == reason &&
      before["message"].AsString() == message) {
    return status;
  }
  json::Array conditions;
  for (const json::Value& condition : status["conditions"].items()) {
    if (condition["type"].AsString() != type) conditions.push_back(condition);
  }
  conditions.push_back(
      json::Obj({{"type", type},
                 {"status", truth},
                 {"reason", reason},
                 {"message", message},
                 {"lastTransitionTime", schema::TransitionTime(before, truth, now)}}));
  return (status.IsObject() ? status : json::Obj())
      .Set("conditions", json::Value(std::move(conditions)));
}

bool IsInitialized(const json::Value& claim, const json::Value& node) {
  if (!schema::ConditionHolds(node["status"]["conditions"], "Ready")) return false;
  const cluster::ResourceList has = cluster::NodeAllocatable(node);
  for (const auto& [resource, amount] : claim["spec"]["resources"]["requests"].members()) {
    if (cluster::IsExtendedResource(resource) && cluster::AmountOf(has, resource) == 0)
      return false;
  }
  return true;
}

bool Counts(const json::Value& pod) {
  return !schema::IsFinalPhase(pod["status"]["phase"].AsString()) &&
         client::ControllerOf(pod)["kind"].AsString() != "DaemonSet" &&
         !pod["metadata"]["annotations"].Has(kMirrorAnnotation);
}

const json::Fields& CountedPodFields() {
  static const json::Fields fields{{"metadata", "annotations", kMirrorAnnotation},
                                   {"metadata", "annotations", kDoNotDisrupt},
                                   {"spec", "nodeName"},
                                   {"status", "phase"}};
  return fields;
}

void IndexByNode(client::Informer& pods) {
  pods.AddIndex(kNodeIndex, [](const json::Value& pod) {
    const std::string node = pod["spec"]["nodeName"].Str();
    return node.empty() ? std::vector<std::string>() : std::vector<std::string>{node};
  });
}

std::vector<client::ObjectKey> PodsOn(const client::Informer& pods, const std::string& node) {
  return pods.Lookup(kNodeIndex, node);
}

const json::Value& DisruptedTaintOf(const json::Value& node) {
  static const json::Value kNone;
  const json::Array& taints = node["spec"]["taints"].items();
  const auto found = std::ranges::find_if(
      taints, [](const json::Value& taint) { return taint["key"].AsString() == kDisruptedTaint; });
  return found == taints.end() ? kNone : *found;
}

json::Value WithDisruptedTaint(const json::Value& node, std::string_view why, Time now) {
  json::Value taint = json::Obj({{"key", kDisruptedTaint}, {"effect", "NoSchedule"}});
  if (!why.empty()) taint = taint.Set("value", why);
  return node.SetPath({"spec", "taints"},
                      node["spec"]["taints"].Append(taint.Set("timeAdded", FormatTime(now))));
}

json::Value WithoutDisruptedTaint(const json::Value& node) {
  json::Array taints;
  for (const json::Value& taint : node["spec"]["taints"].items()) {
    if (taint["key"].AsString() != kDisruptedTaint) taints.push_back(taint);
  }
  return node.SetPath({"spec", "taints"}, json::Value(std::move(taints)));
}

}  // namespace muster::autoscaler
