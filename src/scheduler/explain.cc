#include "scheduler/explain.h"

#include <algorithm>

#include <fmt/core.h>

#include "cluster/resources.h"

namespace muster::scheduler {

namespace {

std::string HoldersText(const Infeasible& facts) {
  std::string out;
  const size_t named = std::min(facts.holders.size(), kMaxHoldersNamed);
  for (size_t i = 0; i < named; ++i) {
    const Holding& holding = facts.holders[i];
    out += fmt::format("{}{} held by {}", i == 0 ? "" : ", ",
                       cluster::AmountText(facts.resource, holding.amount), holding.holder);
  }
  const int64_t others = facts.holder_count - static_cast<int64_t>(named);
  if (others > 0) out += fmt::format(", the rest by {} others", others);
  return out;
}

// "1 of 4 free (3 held by pytorchjob default/a)"
std::string FreeText(const Infeasible& facts) {
  std::string out = fmt::format("{} of {} free", cluster::AmountText(facts.resource, facts.free),
                                cluster::AmountText(facts.resource, facts.offered));
  if (!facts.holders.empty()) out += " (" + HoldersText(facts) + ")";
  return out;
}

// "fits when job a ends"
std::string UnblockText(const Infeasible& facts) {
  std::string jobs;
  const size_t named = std::min(facts.unblocked_by.size(), kMaxHoldersNamed);
  for (size_t i = 0; i < named; ++i) {
    jobs += fmt::format("{}{}", i == 0 ? "" : (i + 1 == facts.unblocked_by.size() ? " and " : ", "),
                        facts.unblocked_by[i].holder);
  }
  if (facts.unblocked_by.size() > named)
    jobs += fmt::format(" and {} more", facts.unblocked_by.size() - named);
  return fmt::format("fits when {} {}", jobs, facts.unblocked_by.size() == 1 ? "ends" : "end");
}

std::string AndUnblockText(const Infeasible& facts) {
  return facts.unblocked_by.empty() ? "" : "; " + UnblockText(facts);
}

// "4 pods x 1 nvidia.com/gpu need 4 at once"
std::string GangDemandText(const Infeasible& facts) {
  const bool all = facts.pods_needed == facts.pods_waiting;
  const std::string pods =
      all ? fmt::format("{} pods", facts.pods_waiting)
          : fmt::format("at least {} of {} pods", facts.pods_needed, facts.pods_waiting);
  const std::string wanted = cluster::AmountText(facts.resource, facts.wanted);
  if (!facts.uniform) return fmt::format("{} need {} {} at once", pods, wanted, facts.resource);
  return fmt::format("{} x {} {} need {} at once", pods,
                     cluster::AmountText(facts.resource, facts.wanted_per_pod), facts.resource,
                     wanted);
}

// What waits beyond the minimum of a gang that has started.
std::string ElasticText(const Infeasible& facts) {
  std::string out =
      fmt::format("gang {} has started with {} pods (at least {}); {} more wait for ", facts.group,
                  facts.started_with, facts.min_member, facts.pods_waiting);
  if (facts.resource.empty()) return out + "a node that takes them.";
  out += facts.uniform
             ? fmt::format("{} {} each", cluster::AmountText(facts.resource, facts.wanted_per_pod),
                           facts.resource)
             : facts.resource;
  if (facts.why == Infeasible::Why::kNeverFits)
    return out + "; no node that passes their rules offers as much.";
  return out + ": " + FreeText(facts) + AndUnblockText(facts) + ".";
}

std::string MinResourcesText(const Infeasible& facts) {
  const std::string out =
      fmt::format("gang {}: its minResources want {} {}", facts.group,
                  cluster::AmountText(facts.resource, facts.wanted), facts.resource);
  if (facts.why == Infeasible::Why::kNeverFits) {
    return out +
           fmt::format(", the cluster offers {}; it is not tried before there are more nodes.",
                       cluster::AmountText(facts.resource, facts.offered));
  }
  return out + ", " + FreeText(facts) + AndUnblockText(facts) + ".";
}

std::string MembersMissingText(const Infeasible& facts) {
  if (facts.task.empty()) {
    return fmt::format("{}/{} pods of the gang exist: gang {} waits for {} more.", facts.members,
                       facts.min_member, facts.group, facts.min_member - facts.members);
  }
  std::string out = fmt::format("{}/{} pods of task {} exist: gang {} waits for {} more.",
                                facts.task_members, facts.task_min_member, facts.task, facts.group,
                                facts.task_min_member - facts.task_members);
  if (facts.task_members == 0)
    out += fmt::format(" No pod of it has the annotation volcano.sh/task-spec: {}.", facts.task);
  return out;
}

std::string GangText(const Infeasible& facts) {
  if (facts.for_min_resources) return MinResourcesText(facts);
  if (facts.started_with > 0) return ElasticText(facts);
  const bool never = facts.why == Infeasible::Why::kNeverFits;
  std::string out = fmt::format("gang {}: ", facts.group);
  if (facts.resource.empty()) {
    return out +
           fmt::format("{} of the {} pods that must start at once fit{}.", facts.pods_fitting,
                       facts.pods_needed,
                       never ? "; it does not fit even an empty cluster" : AndUnblockText(facts));
  }
  out += GangDemandText(facts);
  if (never) {
    return out + fmt::format(
                     ", the cluster offers {}; it does not fit even an empty cluster, it needs "
                     "more nodes.",
                     cluster::AmountText(facts.resource, facts.offered));
  }
  out += ", " + FreeText(facts);
  // Enough in sum, yet in pieces too small.
  if (facts.free >= facts.wanted)
    out += fmt::format(", in pieces that take {} of the pods", facts.pods_fitting);
  return out + AndUnblockText(facts) + ".";
}

std::string PodText(const Infeasible& facts) {
  const bool never = facts.why == Infeasible::Why::kNeverFits;
  if (facts.resource.empty()) {
    if (never) return "It does not fit even an empty cluster: no node passes its rules.";
    return facts.unblocked_by.empty() ? "" : "It " + UnblockText(facts) + ".";
  }
  const std::string wanted = fmt::format(
      "{} {}", cluster::AmountText(facts.resource, facts.wanted_per_pod), facts.resource);
  if (never)
    return fmt::format(
        "It does not fit even an empty cluster: no node that passes its rules offers {}.", wanted);
  std::string out = fmt::format("Waits for {}: {}", wanted, FreeText(facts));
  if (facts.free >= facts.wanted_per_pod) {
    out += fmt::format(", at most {} on one node",
                       cluster::AmountText(facts.resource, facts.most_free_on_a_node));
  }
  return out + AndUnblockText(facts) + ".";
}

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
    out.push_back(json::Obj({{"holder", holding.holder},
                             {"amount", cluster::AmountText(facts.resource, holding.amount)}}));
  }
  return json::Value(std::move(out));
}

}  // namespace

std::string NodesAvailableText(const Infeasible& facts) {
  if (facts.nodes == 0) return "no nodes available to schedule pods";
  std::string out = fmt::format("0/{} nodes are available:", facts.nodes);
  for (size_t i = 0; i < facts.failed_by_rule.size(); ++i) {
    const RuleCount& count = facts.failed_by_rule[i];
    out += fmt::format("{}{} {}", i == 0 ? " " : ", ", count.nodes, count.reason);
  }
  return out + ".";
}

std::string Explain(const Infeasible& facts) {
  switch (facts.why) {
    case Infeasible::Why::kGroupMissing:
      return fmt::format(
          "PodGroup \"{}\", to which the pod says it belongs, does not exist in its namespace.",
          facts.group);
    case Infeasible::Why::kMembersMissing:
      return MembersMissingText(facts);
    case Infeasible::Why::kNoFit:
    case Infeasible::Why::kNeverFits:
      break;
  }
  if (facts.nodes == 0) return NodesAvailableText(facts);
  if (facts.for_min_resources) return GangText(facts);
  const std::string rest = facts.group.empty() ? PodText(facts) : GangText(facts);
  return rest.empty() ? NodesAvailableText(facts) : NodesAvailableText(facts) + " " + rest;
}

json::Value ToJson(const Infeasible& facts) {
  json::Array rules;
  for (const RuleCount& count : facts.failed_by_rule) {
    rules.push_back(json::Obj({{"reason", count.reason}, {"nodes", count.nodes}}));
  }
  json::Value out = json::Obj({{"why", WhyName(facts.why)},
                               {"message", Explain(facts)},
                               {"nodes", facts.nodes},
                               {"failedByRule", json::Value(std::move(rules))}});
  if (!facts.group.empty()) {
    json::Value gang = json::Obj({{"name", facts.group},
                                  {"minMember", facts.min_member},
                                  {"members", facts.members},
                                  {"podsWaiting", facts.pods_waiting},
                                  {"podsNeeded", facts.pods_needed},
                                  {"podsFitting", facts.pods_fitting}});
    if (facts.started_with > 0) gang = gang.Set("startedWith", facts.started_with);
    if (facts.for_min_resources) gang = gang.Set("forMinResources", true);
    if (!facts.task.empty()) {
      gang = gang.Set("task", json::Obj({{"name", facts.task},
                                         {"minMember", facts.task_min_member},
                                         {"members", facts.task_members}}));
    }
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
             {"holders", facts.holder_count},
             {"heldBy", HoldingsJson(facts, facts.holders)}}));
  }
  if (!facts.unblocked_by.empty())
    out = out.Set("fitsWhenTheseEnd", HoldingsJson(facts, facts.unblocked_by));
  return out;
}

}  // namespace muster::scheduler
