#include "scheduler/explain.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/strings.h"
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

// "1 shared by pod default/b (300m), pod default/c (500m)"
std::string SharersText(const Infeasible& facts) {
  std::string out = fmt::format("{} shared by ", facts.shared_gpus);
  const size_t named = std::min(facts.sharers.size(), kMaxHoldersNamed);
  for (size_t i = 0; i < named; ++i) {
    out += fmt::format("{}{} ({}m)", i == 0 ? "" : ", ", facts.sharers[i].holder,
                       facts.sharers[i].amount);
  }
  const int64_t others = facts.sharer_count - static_cast<int64_t>(named);
  if (others > 0) out += fmt::format(" and {} others", others);
  return out;
}

// "1 of 4 free (3 held by pytorchjob default/a)"
std::string FreeText(const Infeasible& facts) {
  std::vector<std::string> taken;
  if (!facts.holders.empty()) taken.push_back(HoldersText(facts));
  if (!facts.sharers.empty()) taken.push_back(SharersText(facts));
  std::string out = fmt::format("{} of {} free", cluster::AmountText(facts.resource, facts.free),
                                cluster::AmountText(facts.resource, facts.offered));
  if (!taken.empty()) out += " (" + Join(taken, ", ") + ")";
  return out;
}

// "8 free nvidia.com/gpu, 96 cpu, 1Ti memory": devices first, without the slots for pods.
std::string FreeAmountsText(const cluster::ResourceList& amounts) {
  std::vector<std::string> texts;
  for (const bool extended : {true, false}) {
    for (const auto& [resource, amount] : amounts) {
      if (cluster::IsExtendedResource(resource) != extended || amount == 0 ||
          resource == cluster::resource::kPods)
        continue;
      texts.push_back(fmt::format("{}{} {}", cluster::AmountText(resource, amount),
                                  texts.empty() ? " free" : "", resource));
    }
  }
  return Join(texts, ", ");
}

// "2 more nodes like n0 (8 GPU H100)", "a node with 8 free nvidia.com/gpu, 64 cpu and zone=a"
std::string MoreNodesText(const MoreNodes& nodes) {
  if (!nodes.like.empty()) {
    return fmt::format("{} more node{} like {} ({})", nodes.count, nodes.count == 1 ? "" : "s",
                       nodes.like, nodes.kind);
  }
  std::string out =
      nodes.count == 1 ? "a node with " : fmt::format("{} more nodes, each with ", nodes.count);
  out += FreeAmountsText(nodes.amounts);
  for (const auto& [key, value] : nodes.labels) out += fmt::format(" and {}={}", key, value);
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

// "3/4 pods of sub-group 0 of policy block exist: gang g waits for 1 more."
std::string SubGroupMissingText(const Infeasible& facts) {
  const Infeasible::OpenSubGroups& each = facts.sub_groups;
  const std::string what =
      each.name.empty() ? "sub-groups" : fmt::format("pods of sub-group {}", each.name);
  return fmt::format("{}/{} {} of policy {} exist: gang {} waits for {} more.", each.there,
                     each.wanted, what, each.policy, facts.group, each.wanted - each.there);
}

std::string MembersMissingText(const Infeasible& facts) {
  if (facts.sub_groups.is_missing) return SubGroupMissingText(facts);
  const bool of_task = !facts.task.empty();
  const int64_t there = of_task ? facts.task_members : facts.members;
  const int64_t wanted = of_task ? facts.task_min_member : facts.min_member;
  const std::string whose = of_task ? "task " + facts.task : "the gang";
  if (facts.held > 0) {
    return fmt::format(
        "{}/{} pods of {} can be scheduled, {} of the gang are held back by scheduling gates or "
        "left "
        "to another scheduler: gang {} waits for {} more.",
        there, wanted, whose, facts.held, facts.group, wanted - there);
  }
  std::string out = fmt::format("{}/{} pods of {} exist: gang {} waits for {} more.", there, wanted,
                                whose, facts.group, wanted - there);
  if (of_task && there == 0)
    out += fmt::format(" No pod of it has the annotation volcano.sh/task-spec: {}.", facts.task);
  return out;
}

// ": it needs 8 more nvidia.com/gpu, as of 2 more nodes like n0 (4 GPU)"
std::string NeedsText(const Infeasible& facts) {
  if (!facts.affinity_fault.empty()) return ": " + facts.affinity_fault;
  std::string out;
  if (!facts.resource.empty() && facts.wanted > facts.offered) {
    out =
        fmt::format("{} more {}", cluster::AmountText(facts.resource, facts.wanted - facts.offered),
                    facts.resource);
  }
  if (facts.more_nodes.has_value())
    out += (out.empty() ? "" : ", as of ") + MoreNodesText(*facts.more_nodes);
  return out.empty() ? "" : ": it needs " + out;
}

std::string SubGroupsText(const Infeasible& facts) {
  const Infeasible::OpenSubGroups& each = facts.sub_groups;
  if (each.policy.empty()) return "";
  return fmt::format(" {} of {} sub-groups of policy {} fit.", each.there, each.wanted,
                     each.policy);
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
    return out + fmt::format(", the cluster offers {}; it does not fit even an empty cluster{}.",
                             cluster::AmountText(facts.resource, facts.offered), NeedsText(facts));
  }
  out += ", " + FreeText(facts);
  // Enough in sum, yet in pieces too small.
  if (facts.free >= facts.wanted)
    out += fmt::format(", in pieces that take {} of the pods", facts.pods_fitting);
  return out + AndUnblockText(facts) + ".";
}

std::string PodText(const Infeasible& facts) {
  const bool never = facts.why == Infeasible::Why::kNeverFits;
  if (facts.resource.empty() || (never && !facts.affinity_fault.empty())) {
    if (never)
      return fmt::format("It does not fit even an empty cluster{}.",
                         facts.affinity_fault.empty() ? ": no node passes its rules"
                                                      : ": " + facts.affinity_fault);
    if (!facts.unblocked_by.empty()) return "It " + UnblockText(facts) + ".";
    return facts.wants_neighbours
               ? "It waits for pods that its podAffinity wants near: none runs where it could."
               : "";
  }
  const std::string wanted = fmt::format(
      "{} {}", cluster::AmountText(facts.resource, facts.wanted_per_pod), facts.resource);
  if (never)
    return fmt::format(
        "It does not fit even an empty cluster: no node that passes its rules offers {}{}.", wanted,
        facts.more_nodes.has_value() ? "; it needs " + MoreNodesText(*facts.more_nodes) : "");
  std::string out = fmt::format("Waits for {}: {}", wanted, FreeText(facts));
  if (facts.free >= facts.wanted_per_pod) {
    out += fmt::format(", at most {} on one node",
                       cluster::AmountText(facts.resource, facts.most_free_on_a_node));
  }
  return out + AndUnblockText(facts) + ".";
}

// "Preempts pod a/b and pod a/c; waits for their end."
std::string RoomText(const Infeasible& facts) {
  if (facts.preempts.empty()) return "Room is made for it: it waits for pods that are ending.";
  std::string pods;
  const size_t named = std::min(facts.preempts.size(), kMaxHoldersNamed);
  for (size_t i = 0; i < named; ++i) {
    pods += fmt::format("{}{}", i == 0 ? "" : (i + 1 == facts.preempts.size() ? " and " : ", "),
                        facts.preempts[i]);
  }
  if (facts.preempts.size() > named)
    pods += fmt::format(" and {} more", facts.preempts.size() - named);
  return fmt::format("Preempts {}; waits for {} end.", pods,
                     facts.preempts.size() == 1 ? "its" : "their");
}

// " Storage: PersistentVolumeClaim a/b is not bound: ..."
std::string VolumeText(const Infeasible& facts) {
  return facts.volume_hint.empty() ? "" : " Storage: " + facts.volume_hint + ".";
}

std::string WaitText(const Infeasible& facts) {
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
  const std::string rest =
      facts.group.empty() ? PodText(facts) : GangText(facts) + SubGroupsText(facts);
  return NodesAvailableText(facts) + (rest.empty() ? "" : " " + rest) + VolumeText(facts);
}

}  // namespace

std::string NodesAvailableText(const Infeasible& facts) {
  if (facts.nodes == 0) return "no nodes available to schedule pods";
  std::string out = fmt::format("0/{} nodes are available:", facts.nodes);
  if (!facts.claim_fault.empty()) return out + " " + facts.claim_fault + ".";
  for (size_t i = 0; i < facts.failed_by_rule.size(); ++i) {
    const RuleCount& count = facts.failed_by_rule[i];
    out += fmt::format("{}{} {}", i == 0 ? " " : ", ", count.nodes, count.reason);
  }
  return out + ".";
}

void RoomIsMade(Infeasible& facts) {
  facts.room_is_made = true;
  facts.unblocked_by.clear();
}

std::string Explain(const Infeasible& facts) {
  std::string text = WaitText(facts);
  if (facts.room_is_made) text += " " + RoomText(facts);
  if (facts.evicts_after.has_value()) {
    text += fmt::format(" Evicts nobody before {}: its binding was refused after room was made: {}",
                        FormatTime(*facts.evicts_after), facts.refusal);
  }
  return text;
}

std::vector<std::string> DetailLines(const Infeasible& facts) {
  std::vector<std::string> lines;
  for (const NodeKind& kind : facts.kinds) {
    std::string line = fmt::format("{} x {}: ", kind.nodes, kind.kind);
    for (size_t i = 0; i < kind.failed_by_rule.size(); ++i) {
      const RuleCount& count = kind.failed_by_rule[i];
      // Of one reason that all of them have, the number would say nothing new.
      if (i > 0) line += ", ";
      if (count.nodes < kind.nodes) line += fmt::format("{} ", count.nodes);
      line += count.reason;
      if (count.reason != "Insufficient " + facts.resource) continue;
      // What is free is so before the gang's other pods have their places.
      if (facts.pods_fitting > 0)
        line += fmt::format(" beside {} pod{} of the gang", facts.pods_fitting,
                            facts.pods_fitting == 1 ? "" : "s");
      line += fmt::format(", {} free at most on one",
                          cluster::AmountText(facts.resource, kind.most_free_on_a_node));
    }
    if (kind.failed_by_rule.empty()) line += "would take it";
    lines.push_back(std::move(line));
  }
  for (const RuleCount& count : facts.excluded_by_one) {
    lines.push_back(fmt::format("{} node{} would take it but for one rule: {}", count.nodes,
                                count.nodes == 1 ? "" : "s", count.reason));
  }
  if (!facts.resource.empty() && facts.wanted > facts.free) {
    lines.push_back(fmt::format(
        "lacks {} {}{}", cluster::AmountText(facts.resource, facts.wanted - facts.free),
        facts.resource, facts.models.empty() ? "" : " of " + Join(facts.models, " or ")));
  }
  if (facts.more_nodes.has_value())
    lines.push_back("fits with " + MoreNodesText(*facts.more_nodes));
  if (!facts.unblocked_by.empty()) lines.push_back(UnblockText(facts));
  return lines;
}

}  // namespace muster::scheduler
