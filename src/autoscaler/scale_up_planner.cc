#include "autoscaler/scale_up_planner.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "base/strings.h"
#include "scheduler/gang_planner.h"
#include "scheduler/node_finder.h"
#include "scheduler/rules.h"

namespace muster::autoscaler {
namespace {

using cluster::ClusterSnapshot;
using cluster::NodeIndex;
using scheduler::GangAttempt;
using scheduler::NodeFinder;
using scheduler::QueuedPod;
using scheduler::Unit;

// Copying a node or a placement costs about this much less than placing a pod.
constexpr size_t kCopiesPerPodOfWork = 16;

// A gang, or pods on their own that are alike.
struct Group {
  Unit unit;
  std::vector<size_t> verdicts;  // of the gang; or of each pod, in the order of unit.pods
};

// A set of machines and what of the group it lets in, together with what is there.
struct Choice {
  std::vector<size_t> offerings;
  size_t placed = 0;
  cluster::MicroUsd price = 0;
  bool IsBetterThan(const Choice& other) const {
    return std::tuple(other.placed, price, offerings.size()) <
           std::tuple(placed, other.price, other.offerings.size());
  }
};

bool IsOfDaemonSet(const ClusterSnapshot& snapshot, const QueuedPod& pod) {
  return snapshot.Holder(pod.holder).starts_with("daemonset ");
}

class ScaleUpPlanning {
 public:
  ScaleUpPlanning(const ClusterSnapshot& snapshot, const std::vector<NodePool>& pools,
                  const std::vector<Offering>& offerings,
                  const std::vector<cluster::ResourceList>& used, const ScaleUpConfig& config)
      : working_(snapshot),
        pools_(pools),
        offerings_(offerings),
        used_(used),
        work_left_(config.max_work) {
    first_class_ = static_cast<cluster::ClassIndex>(working_.class_slots());
    for (size_t i = 0; i < offerings_.size(); ++i) {
      const cluster::NodeInfo& node = *offerings_[i].node;
      auto node_class = std::make_shared<cluster::NodeClass>();
      node_class->labels = node.labels;
      node_class->taints = node.taints;
      working_.SetClass(first_class_ + static_cast<cluster::ClassIndex>(i), std::move(node_class));
    }
  }

  ScaleUp Run(const scheduler::Queue& queue) {
    for (Group& group : GroupsOf(queue)) Serve(group);
    return std::move(result_);
  }

 private:
  std::vector<Group> GroupsOf(const scheduler::Queue& queue);
  void Serve(Group& group);
  void Tell(const Group& group, const GangAttempt& attempt);
  std::optional<Choice> Choose(const Group& group, size_t fits_now);
  std::optional<Choice> CheapestOf(const Group& group, size_t offering, size_t enough,
                                   const std::optional<Choice>& best);
  void MakeLastOneCheaper(const Group& group, const std::vector<size_t>& candidates,
                          Choice& choice);
  std::vector<size_t> CandidatesFor(const Group& group) const;
  size_t PlacedWith(const Group& group, const std::vector<size_t>& added);
  void Commit(const Group& group, const Choice& choice);
  int64_t Allowed(size_t offering) const;
  bool AreAllowed(const std::vector<size_t>& added) const;
  bool TakesAlone(const QueuedPod& pod, size_t offering) const;
  std::string WhyNot(const Group& group) const;
  std::string WhyNot(const QueuedPod& pod, size_t pool) const;
  bool Spend(size_t nodes_added, size_t pods);
  NodeIndex AddNode(ClusterSnapshot& snapshot, size_t offering, size_t number) const;
  static GangAttempt Place(const Unit& unit, NodeFinder& finder);

  ClusterSnapshot working_;
  const std::vector<NodePool>& pools_;
  const std::vector<Offering>& offerings_;
  std::vector<cluster::ResourceList> used_;
  size_t work_left_;
  bool out_of_work_ = false;
  cluster::ClassIndex first_class_ = 0;  // of the first offering
  size_t added_ = 0;
  ScaleUp result_;
};

std::vector<Group> ScaleUpPlanning::GroupsOf(const scheduler::Queue& queue) {
  std::vector<size_t> order(queue.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&queue](size_t a, size_t b) { return scheduler::GoesBefore(queue[a], queue[b]); });
  std::vector<Group> groups;
  std::map<std::pair<cluster::ShapeIndex, cluster::IdentityIndex>, size_t> alike;
  for (const size_t position : order) {
    const Unit& unit = queue[position];
    if (unit.pods.empty() || unit.rests || IsOfDaemonSet(working_, unit.pods.front())) continue;
    const bool nominated = std::ranges::any_of(
        unit.pods, [](const QueuedPod& pod) { return pod.nominated != cluster::kNoIndex; });
    if (nominated || !scheduler::HasItsMembers(unit)) continue;
    const size_t verdict = result_.units.size();
    result_.units.push_back({scheduler::KeyOf(unit), false, {}, {}});
    if (unit.is_gang) {
      groups.push_back({unit, {verdict}});
      continue;
    }
    const QueuedPod& pod = unit.pods.front();
    const auto [at, added] = alike.try_emplace({pod.shape, pod.identity}, groups.size());
    if (added) {
      groups.push_back({unit, {verdict}});
    } else {
      groups[at->second].unit.pods.push_back(pod);
      groups[at->second].verdicts.push_back(verdict);
    }
  }
  return groups;
}

GangAttempt ScaleUpPlanning::Place(const Unit& unit, NodeFinder& finder) {
  return unit.is_gang ? scheduler::PlaceGang(unit, finder) : scheduler::PlaceWhatFits(unit, finder);
}

bool ScaleUpPlanning::Spend(size_t nodes_added, size_t pods) {
  const size_t cost = (working_.node_slots() + working_.placement_slots()) / kCopiesPerPodOfWork +
                      nodes_added + pods;
  out_of_work_ |= cost > work_left_;
  if (cost > work_left_) return false;
  work_left_ -= cost;
  return true;
}

NodeIndex ScaleUpPlanning::AddNode(ClusterSnapshot& snapshot, size_t offering,
                                   size_t number) const {
  auto node = std::make_shared<cluster::NodeInfo>(*offerings_[offering].node);
  node->name = node->uid = node->hostname = fmt::format("new-{}", number);
  const auto index = static_cast<NodeIndex>(snapshot.node_slots());
  snapshot.SetNode(index, std::move(node),
                   first_class_ + static_cast<cluster::ClassIndex>(offering));
  return index;
}

// How many pods of the group get a place with these machines.
size_t ScaleUpPlanning::PlacedWith(const Group& group, const std::vector<size_t>& added) {
  if (!Spend(added.size(), group.unit.pods.size())) return 0;
  ClusterSnapshot trial = working_;
  for (size_t i = 0; i < added.size(); ++i) AddNode(trial, added[i], added_ + i);
  NodeFinder finder(trial);
  return Place(group.unit, finder).placed.size();
}

// More machines of this kind that the pool's limits let in.
int64_t ScaleUpPlanning::Allowed(size_t offering) const {
  const Offering& one = offerings_[offering];
  int64_t allowed = kMaxNodesPerGroup;
  for (const auto& [resource, limit] : pools_[one.pool].limits) {
    const int64_t each = cluster::AmountOf(one.has, resource);
    if (each == 0) continue;
    const int64_t left = limit - cluster::AmountOf(used_[one.pool], resource);
    allowed = std::min(allowed, std::max<int64_t>(left, 0) / each);
  }
  return allowed;
}

bool ScaleUpPlanning::AreAllowed(const std::vector<size_t>& added) const {
  std::vector<cluster::ResourceList> used = used_;
  for (const size_t offering : added)
    cluster::AddTo(used[offerings_[offering].pool], offerings_[offering].has);
  return std::ranges::all_of(added, [&](size_t offering) {
    const size_t pool = offerings_[offering].pool;
    return std::ranges::all_of(pools_[pool].limits, [&](const auto& limit) {
      return cluster::AmountOf(offerings_[offering].has, limit.first) == 0 ||
             cluster::AmountOf(used[pool], limit.first) <= limit.second;
    });
  });
}

// An empty machine of this kind takes the pod, as far as the pod alone is concerned.
bool ScaleUpPlanning::TakesAlone(const QueuedPod& pod, size_t offering) const {
  const cluster::Shape& shape = working_.Shape(pod.shape);
  const cluster::NodeInfo& node = *offerings_[offering].node;
  const auto node_class = first_class_ + static_cast<cluster::ClassIndex>(offering);
  if (scheduler::CheckRules(shape, working_.Class(node_class), node.labels_view()).rule !=
      scheduler::Rule::kPasses) {
    return false;
  }
  return std::ranges::all_of(shape.constraints.requests, [&node](const auto& request) {
    return cluster::AmountOf(node.allocatable, request.first) >= request.second;
  });
}

// In the order of the offerings: by weight of their pools, then by price.
std::vector<size_t> ScaleUpPlanning::CandidatesFor(const Group& group) const {
  std::vector<const QueuedPod*> kinds;
  std::set<cluster::ShapeIndex> seen;
  for (const QueuedPod& pod : group.unit.pods) {
    if (seen.insert(pod.shape).second) kinds.push_back(&pod);
  }
  std::vector<size_t> candidates;
  for (size_t i = 0; i < offerings_.size(); ++i) {
    const bool takes =
        std::ranges::any_of(kinds, [&](const QueuedPod* pod) { return TakesAlone(*pod, i); });
    if (takes && Allowed(i) > 0) candidates.push_back(i);
  }
  return candidates;
}

// So few machines of one kind that `enough` pods get a place, or, if no number does, as many pods
// as can. Nothing if it cannot be better than the best so far.
std::optional<Choice> ScaleUpPlanning::CheapestOf(const Group& group, size_t offering,
                                                  size_t enough,
                                                  const std::optional<Choice>& best) {
  const cluster::MicroUsd price = offerings_[offering].price;
  int64_t most = std::min<int64_t>(Allowed(offering), static_cast<int64_t>(group.unit.pods.size()));
  if (best && best->placed >= enough) most = std::min(most, best->price / price);
  int64_t low = 1, high = most;
  std::optional<Choice> found;
  while (low <= high) {
    // The most at once, so that what never fits is known soon.
    const int64_t count = found ? (low + high) / 2 : high;
    const std::vector<size_t> added(static_cast<size_t>(count), offering);
    const size_t placed = PlacedWith(group, added);
    const bool as_good = placed >= (found ? found->placed : 1);
    if (as_good) found = Choice{added, std::min(placed, enough), price * count};
    if (as_good) {
      high = count - 1;
    } else {
      if (!found) return std::nullopt;
      low = count + 1;
    }
  }
  return found;
}

// The others of its kind are full; the last one may be larger than what is left for it.
void ScaleUpPlanning::MakeLastOneCheaper(const Group& group, const std::vector<size_t>& candidates,
                                         Choice& choice) {
  const cluster::MicroUsd last = offerings_[choice.offerings.back()].price;
  for (const size_t candidate : candidates) {
    const cluster::MicroUsd price = offerings_[candidate].price;
    if (price >= last) continue;
    std::vector<size_t> changed = choice.offerings;
    changed.back() = candidate;
    if (!AreAllowed(changed) || PlacedWith(group, changed) < choice.placed) continue;
    choice.offerings = std::move(changed);
    choice.price += price - last;
    return;  // they are sorted by price
  }
}

std::optional<Choice> ScaleUpPlanning::Choose(const Group& group, size_t fits_now) {
  const std::vector<size_t> candidates = CandidatesFor(group);
  const size_t all = group.unit.pods.size();
  std::optional<Choice> best;
  std::vector<size_t> of_weight;
  for (size_t i = 0; i < candidates.size();) {
    of_weight.clear();
    const int64_t weight = pools_[offerings_[candidates[i]].pool].weight;
    for (; i < candidates.size() && pools_[offerings_[candidates[i]].pool].weight == weight; ++i) {
      if (of_weight.size() < kMaxOfferingsTried) of_weight.push_back(candidates[i]);
    }
    for (const size_t candidate : of_weight) {
      const std::optional<Choice> choice = CheapestOf(group, candidate, all, best);
      if (choice && choice->placed > fits_now && (!best || choice->IsBetterThan(*best)))
        best = choice;
    }
    if (best && best->placed == all) break;
  }
  if (best) MakeLastOneCheaper(group, of_weight, *best);
  return best;
}

void ScaleUpPlanning::Commit(const Group& group, const Choice& choice) {
  std::map<NodeIndex, size_t> new_nodes;  // -> position in the result
  for (const size_t offering : choice.offerings) {
    new_nodes[AddNode(working_, offering, added_++)] = result_.nodes.size();
    result_.nodes.push_back({offering, {}});
    cluster::AddTo(used_[offerings_[offering].pool], offerings_[offering].has);
  }
  NodeFinder finder(working_);
  const GangAttempt attempt = Place(group.unit, finder);
  std::vector<bool> placed(group.unit.pods.size());
  for (const scheduler::PlacedPod& each : attempt.placed) {
    placed[each.pod] = true;
    const auto at = new_nodes.find(working_.At(each.placement).node);
    if (at == new_nodes.end()) continue;
    result_.nodes[at->second].pods.push_back(group.unit.pods[each.pod].key);
    const size_t verdict = group.verdicts[group.unit.is_gang ? 0 : each.pod];
    std::vector<size_t>& nodes = result_.units[verdict].nodes;
    if (std::ranges::find(nodes, at->second) == nodes.end()) nodes.push_back(at->second);
  }
  for (size_t i = 0; i < placed.size(); ++i) {
    UnitVerdict& verdict = result_.units[group.verdicts[group.unit.is_gang ? 0 : i]];
    if (!placed[i]) verdict.why_not = WhyNot(group);
    if (placed[i] && verdict.nodes.empty() && !group.unit.is_gang) verdict.fits = true;
  }
}

// Of what is placed on nodes that are there, and of the rest.
void ScaleUpPlanning::Tell(const Group& group, const GangAttempt& attempt) {
  std::vector<bool> placed(group.unit.pods.size());
  for (const scheduler::PlacedPod& each : attempt.placed) placed[each.pod] = true;
  const bool all = attempt.placed.size() == placed.size();
  const std::string why = all || out_of_work_ ? "" : WhyNot(group);
  for (size_t i = 0; i < placed.size(); ++i) {
    UnitVerdict& verdict = result_.units[group.verdicts[group.unit.is_gang ? 0 : i]];
    verdict.fits = group.unit.is_gang ? all : placed[i];
    if (!placed[i]) verdict.why_not = why;
  }
}

void ScaleUpPlanning::Serve(Group& group) {
  NodeFinder now(working_);
  const GangAttempt attempt = Place(group.unit, now);
  const size_t fits_now = attempt.placed.size();
  if (fits_now == group.unit.pods.size()) return Tell(group, attempt);
  scheduler::TakeBack(attempt, now);
  if (const std::optional<Choice> choice = Choose(group, fits_now)) return Commit(group, *choice);
  NodeFinder again(working_);
  Tell(group, Place(group.unit, again));
}

// Of one pod and one pool: what keeps all of its types away.
std::string ScaleUpPlanning::WhyNot(const QueuedPod& pod, size_t pool) const {
  const cluster::Shape& shape = working_.Shape(pod.shape);
  std::string rule;
  std::map<std::string, int64_t> most;  // of what the pod wants, on one machine that it may go to
  bool any = false, fits = false;
  for (size_t i = 0; i < offerings_.size(); ++i) {
    if (offerings_[i].pool != pool) continue;
    any = true;
    const cluster::NodeInfo& node = *offerings_[i].node;
    const auto verdict = scheduler::CheckRules(
        shape, working_.Class(first_class_ + static_cast<cluster::ClassIndex>(i)),
        node.labels_view());
    if (verdict.rule != scheduler::Rule::kPasses) {
      if (rule.empty()) rule = scheduler::ReasonText(verdict);
      continue;
    }
    fits |= TakesAlone(pod, i);
    for (const auto& [resource, amount] : shape.constraints.requests) {
      int64_t& largest = most[resource];
      largest = std::max(largest, cluster::AmountOf(node.allocatable, resource));
    }
  }
  if (!any) return "its requirements allow no instance type";
  if (most.empty()) return rule.starts_with("node(s) ") ? "its " + rule : rule;
  for (const auto& [resource, amount] : shape.constraints.requests) {
    if (amount <= most[resource]) continue;
    return fmt::format("the pod wants {} {}, and its largest type has {}",
                       cluster::AmountText(resource, amount), resource,
                       cluster::AmountText(resource, most[resource]));
  }
  if (!fits) return "none of its types has all that the pod wants";
  for (const auto& [resource, limit] : pools_[pool].limits) {
    const int64_t there = cluster::AmountOf(used_[pool], resource);
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < offerings_.size(); ++i) {
      if (offerings_[i].pool == pool && TakesAlone(pod, i))
        least = std::min(least, cluster::AmountOf(offerings_[i].has, resource));
    }
    if (there + least > limit) {
      return fmt::format("its limit of {} {} is reached ({} there)",
                         cluster::AmountText(resource, limit), resource,
                         cluster::AmountText(resource, there));
    }
  }
  return "no number of its nodes within its limits takes all pods that have to start together";
}

std::string ScaleUpPlanning::WhyNot(const Group& group) const {
  if (pools_.empty()) return "there is no NodePool";
  std::vector<std::string> reasons;
  for (size_t pool = 0; pool < pools_.size(); ++pool) {
    reasons.push_back(
        fmt::format("NodePool {}: {}", pools_[pool].name, WhyNot(group.unit.pods.back(), pool)));
  }
  return Join(reasons, "; ");
}

}  // namespace

ScaleUp PlanScaleUp(const ClusterSnapshot& snapshot, const scheduler::Queue& queue,
                    const std::vector<NodePool>& pools, const std::vector<Offering>& offerings,
                    const std::vector<cluster::ResourceList>& used, const ScaleUpConfig& config) {
  return ScaleUpPlanning(snapshot, pools, offerings, used, config).Run(queue);
}

}  // namespace muster::autoscaler
