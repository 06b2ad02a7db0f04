// Infeasible as JSON; the fields are described in docs/explain.md.

#include <fmt/core.h>

#include "cluster/resources.h"
#include "scheduler/explain.h"

namespace muster::scheduler {

namespace {

std::string_view WhyName(Infeasible::Why why) {
  switch (why) {
    case Infeasible::Why::kNoFit:
      return "NoFit";
    case Infeasible::Why::kNeverFits:
      return "NeverFits";
    case Infeasible::Why::kMembersMissing:
      return "MembersMissing";
    case Infeasible::Why::kGroupMissing:
      return "PodGroupMissing";
  }
  return "";
}

json::Value HoldingsJson(const Infeasible& facts, const std::vector<Holding>& holdings) {
  json::Array out;
  for (const Holding& holding : holdings) {
    json::Value entry = json::Obj({{"holder", holding.holder}});
    if (!facts.resource.empty())
      entry = entry.Set("amount", cluster::AmountText(facts.resource, holding.amount));
    out.push_back(std::move(entry));
  }
  return json::Value(std::move(out));
}

json::Value RulesJson(const std::vector<RuleCount>& counts) {
  json::Array rules;
  for (const RuleCount& count : counts)
    rules.push_back(json::Obj({{"reason", count.reason}, {"nodes", count.nodes}}));
  return json::Value(std::move(rules));
}

json::Value AmountsJson(const cluster::ResourceList& amounts) {
  json::Value out = json::Obj({});
  for (const auto& [resource, amount] : amounts)
    out = out.Set(resource, cluster::AmountText(resource, amount));
  return out;
}

json::Value KindsJson(const Infeasible& facts) {
  json::Array out;
  for (const NodeKind& kind : facts.kinds) {
    json::Value row = json::Obj({{"kind", kind.kind},
                                 {"nodes", kind.nodes},
                                 {"names", json::Strings(kind.names)},
                                 {"failedByRule", RulesJson(kind.failed_by_rule)}});
    if (!facts.resource.empty()) {
      row = row.Set("free", cluster::AmountText(facts.resource, kind.free))
                .Set("mostFreeOnANode",
                     cluster::AmountText(facts.resource, kind.most_free_on_a_node));
    }
    out.push_back(std::move(row));
  }
  return json::Value(std::move(out));
}

json::Value SubGroupsJson(const Infeasible::OpenSubGroups& open) {
  const json::Value out = json::Obj({{"policy", open.policy},
                                     {open.is_missing ? "members" : "fitting", open.there},
                                     {"wanted", open.wanted}});
  return open.name.empty() ? out : out.Set("name", open.name);
}

json::Value MoreNodesJson(const MoreNodes& nodes) {
  json::Value out =
      json::Obj({{"count", nodes.count},
                 {nodes.like.empty() ? "free" : "offers", AmountsJson(nodes.amounts)}});
  if (!nodes.like.empty()) return out.Set("like", nodes.like).Set("kind", nodes.kind);
  json::Value labels = json::Obj({});
  for (const auto& [key, value] : nodes.labels) labels = labels.Set(key, value);
  return out.Set("labels", labels);
}

}  // namespace

json::Value ToJson(const Infeasible& facts) {
  json::Value out = json::Obj({{"why", WhyName(facts.why)},
                               {"message", Explain(facts)},
                               {"nodes", facts.nodes},
                               {"failedByRule", RulesJson(facts.failed_by_rule)}});
  if (!facts.group.empty()) {
    json::Value gang = json::Obj({{"name", facts.group},
                                  {"minMember", facts.min_member},
                                  {"members", facts.members},
                                  {"podsWaiting", facts.pods_waiting},
                                  {"podsNeeded", facts.pods_needed},
                                  {"podsFitting", facts.pods_fitting}});
    if (facts.held > 0) gang = gang.Set("held", facts.held);
    if (facts.started_with > 0) gang = gang.Set("startedWith", facts.started_with);
    if (facts.for_min_resources) gang = gang.Set("forMinResources", true);
    if (!facts.task.empty()) {
      gang = gang.Set("task", json::Obj({{"name", facts.task},
                                         {"minMember", facts.task_min_member},
                                         {"members", facts.task_members}}));
    }
    if (!facts.sub_groups.policy.empty())
      gang = gang.Set("subGroups", SubGroupsJson(facts.sub_groups));
    out = out.Set("gang", std::move(gang));
  }
  if (!facts.resource.empty()) {
    out = out.Set(
        "resource",
        json::Obj(
            {{"name", facts.resource},
             {"wantedPerPod", cluster::AmountText(facts.resource, facts.wanted_per_pod)},
             {"wanted", cluster::AmountText(facts.resource, facts.wanted)},
             {"free", cluster::AmountText(facts.resource, facts.free)},
             {"offered", cluster::AmountText(facts.resource, facts.offered)},
             {"mostFreeOnANode", cluster::AmountText(facts.resource, facts.most_free_on_a_node)},
             {"models", json::Strings(facts.models)},
             {"holders", facts.holder_count},
             {"heldBy", HoldingsJson(facts, facts.holders)}}));
  }
  if (facts.shared_gpus > 0) {
    json::Array sharers;
    for (const Holding& sharer : facts.sharers)
      sharers.push_back(json::Obj({{"holder", sharer.holder}, {"milli", sharer.amount}}));
    out = out.Set("sharedGpus", json::Obj({{"gpus", facts.shared_gpus},
                                           {"sharers", facts.sharer_count},
                                           {"sharedBy", json::Value(std::move(sharers))}}));
  }
  if (facts.wants_neighbours) out = out.Set("wantsNeighbours", true);
  if (!facts.volume_hint.empty()) out = out.Set("storage", facts.volume_hint);
  if (!facts.affinity_fault.empty()) out = out.Set("affinityFault", facts.affinity_fault);
  if (!facts.kinds.empty()) {
    out = out.Set("nodeKinds", KindsJson(facts))
              .Set("excludedByOneRule", RulesJson(facts.excluded_by_one));
  }
  if (facts.more_nodes.has_value())
    out = out.Set("fitsWithNodes", MoreNodesJson(*facts.more_nodes));
  if (!facts.unblocked_by.empty())
    out = out.Set("fitsWhenTheseEnd", HoldingsJson(facts, facts.unblocked_by));
  if (facts.room_is_made) {
    json::Array pods;
    for (const std::string& pod : facts.preempts) pods.push_back(pod);
    out = out.Set("preempts", json::Value(std::move(pods)));
  }
  if (facts.evicts_after.has_value()) {
    out = out.Set("evictsNobody", json::Obj({{"before", FormatTime(*facts.evicts_after)},
                                             {"bindingRefused", facts.refusal}}));
  }
  return out;
}

}  // namespace muster::scheduler
