#include "scheduler/diagnosis.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/core.h>

#include "scheduler/affinity_faults.h"
#include "scheduler/failures.h"
#include "scheduler/gang_planner.h"
#include "scheduler/more_nodes.h"
#include "scheduler/node_kinds.h"
#include "scheduler/rules.h"
#include "scheduler/volume_hints.h"

namespace muster::scheduler {

using cluster::ClusterSnapshot;
using cluster::HolderIndex;
using cluster::kNoIndex;
using cluster::NodeIndex;
using cluster::ResourceIndex;

namespace {

constexpr char kNoShare[] =
    "muster.dev/gpu-milli is a share of one GPU: at most 1000 in all containers of a pod, and no "
    "nvidia.com/gpu beside it";

bool IsNoShare(const cluster::Shape& shape) {
  const cluster::ResourceList& requests = shape.constraints.requests;
  const int64_t milli = cluster::AmountOf(requests, cluster::resource::kGpuMilli);
  return milli > cluster::kWholeGpu ||
         (milli > 0 && cluster::AmountOf(requests, cluster::resource::kNvidiaGpu) > 0);
}

// Equal for units that are refused and freed for the same reasons.
std::string DemandKey(const Unit& unit, PodRules& pod_rules) {
  const auto looks_at = [&](const QueuedPod& pod) {
    return pod_rules.LookOf(pod.shape, pod.identity);
  };
  std::string key =
      fmt::format("{} {} {} {}:", unit.is_gang, unit.Needed(), unit.min_member, unit.members);
  for (const TaskCount& task : unit.tasks) key += fmt::format("{},", task.Needed());
  for (const SubGroupMinimum& policy : unit.sub_groups.policies)
    key += fmt::format("{}/{};", policy.policy, policy.min_sub_groups);
  for (const SubGroup& group : unit.sub_groups.groups)
    key += fmt::format("{}/{}/{},", group.policy, group.Needed(), group.Exists());
  for (const auto& [resource, amount] : unit.min_resources)
    key += fmt::format("{}={},", resource, amount);
  size_t run = 0;
  for (size_t position = 0; position < unit.pods.size(); ++position) {
    ++run;
    if (position + 1 == unit.pods.size() ||
        unit.pods[position + 1].shape != unit.pods[position].shape ||
        looks_at(unit.pods[position + 1]) != looks_at(unit.pods[position]) ||
        unit.pods[position + 1].task != unit.pods[position].task ||
        unit.pods[position + 1].sub_group != unit.pods[position].sub_group) {
      const QueuedPod& pod = unit.pods[position];
      key += fmt::format("{}x{}/{}/{}/{},", run, pod.shape, looks_at(pod), pod.task, pod.sub_group);
      run = 0;
    }
  }
  return key;
}

// What a gang whose members do not exist lacks of sub-groups.
Infeasible::OpenSubGroups MissingSubGroups(const Unit& unit) {
  const SubGroups& all = unit.sub_groups;
  const auto lacking =
      std::find_if(all.groups.begin(), all.groups.end(),
                   [](const SubGroup& group) { return group.members > 0 && !group.Exists(); });
  if (lacking != all.groups.end()) {
    return {all.policies[lacking->policy].policy, true, lacking->name.empty() ? "*" : lacking->name,
            lacking->members, lacking->size};
  }
  for (size_t policy = 0; policy < all.policies.size(); ++policy) {
    const int64_t there = all.CountOf(policy, [](const SubGroup& group) { return group.Exists(); });
    const int64_t wanted = all.policies[policy].min_sub_groups;
    if (there < wanted) return {all.policies[policy].policy, true, "", there, wanted};
  }
  return {};
}

// Of the first policy with sub-groups that are not whole: how many of them the attempt placed.
Infeasible::OpenSubGroups OpenSubGroups(const Unit& unit, const GangAttempt& attempt) {
  const SubGroups& all = unit.sub_groups;
  std::vector<bool> fits(all.groups.size(), false);
  for (const PlacedPod& placed : attempt.placed) {
    if (!unit.ComesAlone(unit.pods[placed.pod])) fits[unit.pods[placed.pod].sub_group] = true;
  }
  for (size_t policy = 0; policy < all.policies.size(); ++policy) {
    Infeasible::OpenSubGroups out{all.policies[policy].policy};
    for (size_t group = 0; group < all.groups.size(); ++group) {
      const SubGroup& each = all.groups[group];
      if (each.policy != policy || each.IsWhole() || !each.Exists()) continue;
      ++out.wanted;
      out.there += fits[group] ? 1 : 0;
    }
    if (out.wanted > 0) return out;
  }
  return {};
}

Infeasible WithGangFacts(const Unit& unit, Infeasible facts) {
  if (unit.is_gang) facts.group = unit.name;
  facts.min_member = unit.min_member;
  facts.members = unit.members;
  facts.held = unit.held;
  facts.pods_waiting = static_cast<int64_t>(unit.pods.size());
  facts.pods_needed = unit.Needed();
  if (unit.is_gang && unit.IsMet()) facts.started_with = unit.occupied;
  const auto lacking =
      std::find_if(unit.tasks.begin(), unit.tasks.end(),
                   [](const TaskCount& task) { return task.members < task.min_member; });
  if (lacking != unit.tasks.end()) {
    facts.task = lacking->name;
    facts.task_min_member = lacking->min_member;
    facts.task_members = lacking->members;
  }
  return facts;
}

// The resource to talk about: an extended one if any is short, else the one that is short on most
// nodes.
ResourceIndex Scarcest(const ClusterSnapshot& snapshot, const Failures& failures) {
  ResourceIndex scarcest = kNoIndex;
  std::pair<bool, int64_t> worst{false, 0};
  for (ResourceIndex resource = 0; resource < failures.insufficient.size(); ++resource) {
    const int64_t lacking = failures.insufficient[resource];
    const bool extended = cluster::IsExtendedResource(snapshot.ResourceName(resource));
    if (lacking > 0 && std::pair(extended, lacking) > worst) {
      worst = {extended, lacking};
      scarcest = resource;
    }
  }
  return scarcest;
}

// Where node affinity is what keeps the pod from every node that would hold it.
std::string AffinityFault(const ClusterSnapshot& snapshot, const cluster::Shape& shape) {
  const cluster::NodeAffinity& affinity = shape.constraints.affinity;
  if (affinity.IsTrivial()) return "";
  std::string fault = ContradictionIn(affinity);
  return fault.empty() ? UnmetRequirement(affinity, snapshot) : fault;
}

}  // namespace

Diagnosis::Diagnosis(NodeFinder& finder, size_t max_work, bool detail)
    : finder_(finder), detail_(detail), more_nodes_work_(max_work), unblocking_(finder, max_work) {}

Diagnosis::~Diagnosis() = default;

Infeasible Diagnosis::Explain(const Unit& unit) {
  if (!HasItsMembers(unit)) {
    Infeasible facts;
    facts.why =
        unit.group_missing ? Infeasible::Why::kGroupMissing : Infeasible::Why::kMembersMissing;
    facts.nodes = static_cast<int64_t>(finder_.snapshot().node_count());
    facts.sub_groups = MissingSubGroups(unit);
    return WithGangFacts(unit, std::move(facts));
  }
  const auto [known, added] = by_demand_.try_emplace(DemandKey(unit, finder_.pod_rules()));
  if (added) known->second = Examine(unit);
  return WithGangFacts(unit, known->second);
}

Infeasible Diagnosis::Examine(const Unit& unit) {
  Infeasible out;
  ClusterSnapshot& snapshot = finder_.snapshot();
  out.nodes = static_cast<int64_t>(snapshot.node_count());
  if (const std::optional<Shortage> shortage = ShortOf(unit, snapshot); shortage.has_value())
    return ExamineShortage(unit, *shortage, std::move(out));
  GangAttempt attempt = PlaceWhatFits(unit, finder_);
  out.pods_fitting = static_cast<int64_t>(attempt.placed.size());
  out.sub_groups = OpenSubGroups(unit, attempt);
  const size_t position = PlaceUpToFailure(unit, attempt);
  const QueuedPod& unplaced = unit.pods[position];
  const cluster::Shape& failed = snapshot.Shape(unplaced.shape);
  Failures failures = CountFailures(finder_.pod_rules(), unplaced.shape, unplaced.identity);
  const ResourceIndex scarce = Scarcest(snapshot, failures);
  out.failed_by_rule = std::move(failures.by_rule);
  out.claim_fault = std::move(failures.claim_fault);
  out.volume_hint = VolumeHint(finder_.pod_rules().volumes(), snapshot, unplaced.shape);
  out.wants_neighbours =
      std::any_of(out.failed_by_rule.begin(), out.failed_by_rule.end(), [](const RuleCount& each) {
        return each.reason == ReasonText({Rule::kPodAffinity, nullptr});
      });
  if (detail_) AddDetail(unplaced, out);
  TakeBack(attempt, finder_);
  // Of what others left, before a part of the gang is placed.
  if (detail_ && scarce != kNoIndex) AddFree(snapshot, unplaced.shape, scarce, out.kinds);
  if (!out.claim_fault.empty()) return out;  // no end and no node would help
  if (!failed.unknown_resource.empty()) {
    out.why = Infeasible::Why::kNeverFits;
    out.resource = failed.unknown_resource;
    if (IsNoShare(failed)) out.affinity_fault = kNoShare;
    return out;
  }

  held_.clear();
  holding_.clear();
  if (scarce != kNoIndex) {
    out.resource = snapshot.ResourceName(scarce);
    DescribeScarcity(unit, failed, out);
  }
  if (!FitsAlone(unit)) {
    out.why = Infeasible::Why::kNeverFits;
    out.affinity_fault = AffinityFault(snapshot, failed);
    // Where it does not even fit an empty cluster, so many more than that.
    if (out.affinity_fault.empty())
      AddMoreNodes(unit, position, empty_ == nullptr ? snapshot : *empty_, out);
    return out;
  }
  if (detail_) AddMoreNodes(unit, position, snapshot, out);
  SearchUnblocking(unit, position, out);
  return out;
}

size_t Diagnosis::PlaceUpToFailure(const Unit& unit, GangAttempt& attempt) {
  const size_t first = attempt.first_unplaced.value_or(0);
  if (unit.ComesAlone(unit.pods[first])) return first;
  Unit part = unit;
  part.sub_groups = {};
  part.pods.clear();
  std::vector<size_t> positions;
  for (size_t position = first; position < unit.pods.size(); ++position) {
    if (unit.pods[position].sub_group != unit.pods[first].sub_group) continue;
    positions.push_back(position);
    part.pods.push_back(unit.pods[position]);
    part.pods.back().sub_group = kNoSubGroup;
  }
  const GangAttempt more = PlaceWhatFits(part, finder_);
  for (const PlacedPod& placed : more.placed)
    attempt.placed.push_back({positions[placed.pod], placed.placement});
  return positions[more.first_unplaced.value_or(0)];
}

void Diagnosis::SearchUnblocking(const Unit& unit, size_t position, Infeasible& out) {
  for (const HolderIndex holder :
       unblocking_.Search(unit, position, holding_, out.wanted - out.free)) {
    out.unblocked_by.push_back(
        {finder_.snapshot().Holder(holder), holder < held_.size() ? held_[holder] : 0});
  }
}

// The gang is not tried before the cluster has its minResources.
Infeasible Diagnosis::ExamineShortage(const Unit& unit, const Shortage& shortage, Infeasible out) {
  const ClusterSnapshot& snapshot = finder_.snapshot();
  out.for_min_resources = true;
  out.resource = shortage.resource;
  out.wanted = shortage.wanted;
  held_.clear();
  holding_.clear();
  const ResourceIndex resource = snapshot.FindResource(shortage.resource);
  if (resource != kNoIndex) {
    std::vector<bool> all(snapshot.node_slots(), false);
    for (NodeIndex node = 0; node < snapshot.node_slots(); ++node)
      all[node] = snapshot.HasNode(node);
    DescribeHolders(resource, all, out);
  }
  if (out.offered < out.wanted) {
    out.why = Infeasible::Why::kNeverFits;
  } else {
    SearchUnblocking(unit, 0, out);
  }
  return out;
}

void Diagnosis::AddDetail(const QueuedPod& pod, Infeasible& out) {
  out.kinds = GroupNodes(finder_.pod_rules(), pod.shape, pod.identity);
  out.excluded_by_one = ExcludedByOneRule(finder_.pod_rules(), pod.shape, pod.identity);
}

void Diagnosis::AddMoreNodes(const Unit& unit, size_t position, const ClusterSnapshot& snapshot,
                             Infeasible& out) {
  out.more_nodes = NodesToAdd(unit, position, snapshot, more_nodes_work_);
  if (out.more_nodes.has_value() && out.more_nodes->like.empty())
    out.more_nodes->count = std::max<int64_t>(unit.Needed() - out.pods_fitting, 1);
}

// Who has how much of the scarce resource on the nodes that pass the other rules.
void Diagnosis::DescribeScarcity(const Unit& unit, const cluster::Shape& failed, Infeasible& out) {
  const ClusterSnapshot& snapshot = finder_.snapshot();
  const ResourceIndex resource = snapshot.FindResource(out.resource);
  out.wanted_per_pod = failed.AmountOf(resource);
  const int64_t needed = unit.Needed();
  for (size_t position = 0; position < unit.pods.size(); ++position) {
    const int64_t amount = snapshot.Shape(unit.pods[position].shape).AmountOf(resource);
    if (static_cast<int64_t>(position) < needed) out.wanted += amount;
    out.uniform &= amount == out.wanted_per_pod;
  }
  NodeFilter filter(snapshot, failed);
  std::vector<bool> passes(snapshot.node_slots(), false);
  for (NodeIndex node = 0; node < snapshot.node_slots(); ++node)
    passes[node] = snapshot.HasNode(node) && filter.Passes(node);
  DescribeHolders(resource, passes, out);
}

// What is free and offered on these nodes, and who has the rest.
void Diagnosis::DescribeHolders(ResourceIndex resource, const std::vector<bool>& nodes,
                                Infeasible& out) {
  const ClusterSnapshot& snapshot = finder_.snapshot();
  std::set<std::string> models;
  for (NodeIndex node = 0; node < snapshot.node_slots(); ++node) {
    if (!nodes[node]) continue;
    const int64_t free = std::max<int64_t>(snapshot.Free(node, resource), 0);
    out.free += free;
    out.offered += snapshot.Offered(node, resource);
    out.most_free_on_a_node = std::max(out.most_free_on_a_node, free);
    if (cluster::IsExtendedResource(out.resource)) models.insert(ModelOf(snapshot.Node(node)));
  }
  models.erase("");
  out.models.assign(models.begin(), models.end());
  ListHolders(nodes, resource, out);
}

// Sets `listed` to the first kMaxHoldersListed of those with any, from the most on; returns how
// many there are.
int64_t Diagnosis::ListLargest(const std::vector<int64_t>& held,
                               std::vector<std::pair<HolderIndex, int64_t>>& listed) {
  listed.clear();
  for (HolderIndex holder = 0; holder < held.size(); ++holder) {
    if (held[holder] > 0) listed.emplace_back(holder, held[holder]);
  }
  const auto count = static_cast<int64_t>(listed.size());
  const size_t most = std::min(listed.size(), kMaxHoldersListed);
  std::partial_sort(listed.begin(), listed.begin() + static_cast<ptrdiff_t>(most), listed.end(),
                    [](const auto& a, const auto& b) {
                      return a.second != b.second ? a.second > b.second : a.first < b.first;
                    });
  listed.resize(most);
  return count;
}

void Diagnosis::ListHolders(const std::vector<bool>& passes, ResourceIndex resource,
                            Infeasible& out) {
  const ClusterSnapshot& snapshot = finder_.snapshot();
  const bool is_gpu = snapshot.ResourceName(resource) == cluster::resource::kNvidiaGpu;
  held_.assign(snapshot.holder_slots(), 0);
  std::vector<int64_t> shares(snapshot.holder_slots(), 0);
  std::map<NodeIndex, cluster::DeviceSet> shared;
  for (cluster::PlacementIndex index = 0; index < snapshot.placement_slots(); ++index) {
    const cluster::Placement& placement = snapshot.At(index);
    if (placement.node == kNoIndex || !passes[placement.node]) continue;
    const cluster::Shape& shape = snapshot.Shape(placement.shape);
    held_[placement.holder] += shape.AmountOf(resource);
    if (!is_gpu || shape.gpu_milli == 0 || placement.devices.IsEmpty()) continue;
    shares[placement.holder] += shape.gpu_milli;
    shared[placement.node].Add(placement.devices);
  }
  out.holder_count = ListLargest(held_, holding_);
  for (const auto& [holder, amount] : holding_)
    out.holders.push_back({snapshot.Holder(holder), amount});
  for (const auto& [node, gpus] : shared) out.shared_gpus += gpus.Count();
  std::vector<std::pair<HolderIndex, int64_t>> sharers;
  out.sharer_count = ListLargest(shares, sharers);
  for (const auto& [holder, milli] : sharers)
    out.sharers.push_back({snapshot.Holder(holder), milli});
}

bool Diagnosis::FitsAlone(const Unit& unit) {
  if (unit.Needed() == 1) return SomeNodeOffers(unit);
  if (empty_finder_ == nullptr) {
    empty_ = std::make_unique<ClusterSnapshot>(finder_.snapshot());
    for (cluster::PlacementIndex index = 0; index < empty_->placement_slots(); ++index) {
      if (empty_->At(index).node != kNoIndex) empty_->Remove(index);
    }
    empty_finder_ = std::make_unique<NodeFinder>(*empty_);
  }
  const GangAttempt attempt = PlaceGang(unit, *empty_finder_, search_);
  TakeBack(attempt, *empty_finder_);
  // The pods that it wants to be near to, or spreads beside, are not there; that says nothing.
  return !attempt.placed.empty() || attempt.undecided ||
         std::any_of(unit.pods.begin(), unit.pods.end(), [&](const QueuedPod& pod) {
           const auto& relations = empty_->Shape(pod.shape).constraints.relations;
           return !relations.affinity.empty() || !relations.spread.empty();
         });
}

bool Diagnosis::SomeNodeOffers(const Unit& unit) const {
  const ClusterSnapshot& snapshot = finder_.snapshot();
  for (size_t position = 0; position < unit.pods.size(); ++position) {
    if (position > 0 && unit.pods[position].shape == unit.pods[position - 1].shape) continue;
    const cluster::Shape& shape = snapshot.Shape(unit.pods[position].shape);
    NodeFilter filter(snapshot, shape);
    for (NodeIndex node = 0; node < snapshot.node_slots(); ++node) {
      if (!snapshot.HasNode(node) || !snapshot.OffersAmounts(shape, node)) continue;
      if (filter.Passes(node)) return true;
    }
  }
  return false;
}

}  // namespace muster::scheduler
