#include "scheduler/gang_search.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "scheduler/rules.h"

namespace muster::scheduler {

using cluster::ClusterSnapshot;
using cluster::kNoIndex;
using cluster::NodeIndex;
using cluster::ResourceIndex;

namespace {

// What placing a pod and taking it back costs, in looks.
constexpr size_t kLooksPerPlacement = 8;
// Measuring a kind passes over all nodes without changing any: so many for one look.
constexpr size_t kNodesPerLook = 16;
// Pods that a node counts for at most, so that sums stay small.
constexpr int64_t kMaxRoom = int64_t{1} << 20;

}  // namespace

bool SearchBudget::Take(size_t looks) {
  const bool enough = looks <= looks_left;
  looks_left = enough ? looks_left - looks : 0;
  return enough;
}

int64_t LeastAskedFor(const Unit& unit, const ClusterSnapshot& snapshot, ResourceIndex resource) {
  std::vector<int64_t> amounts;
  amounts.reserve(unit.pods.size());
  for (const QueuedPod& pod : unit.pods)
    amounts.push_back(snapshot.Shape(pod.shape).AmountOf(resource));
  const size_t needed = std::min(static_cast<size_t>(unit.Needed()), amounts.size());
  std::partial_sort(amounts.begin(), amounts.begin() + static_cast<ptrdiff_t>(needed),
                    amounts.end());
  int64_t sum = 0;
  for (size_t i = 0; i < needed; ++i) sum = std::min(sum + amounts[i], cluster::kMaxAmount);
  return sum;
}

bool HasFree(const ClusterSnapshot& snapshot, ResourceIndex resource, int64_t wanted) {
  for (NodeIndex node = 0; node < snapshot.node_slots() && wanted > 0; ++node) {
    if (snapshot.HasNode(node)) wanted -= std::max<int64_t>(snapshot.Free(node, resource), 0);
  }
  return wanted <= 0;
}

GangSearch::GangSearch(const Unit& unit, NodeFinder& finder, SearchBudget& budget)
    : unit_(unit), finder_(finder), budget_(budget), needed_(unit.Needed()) {}

GangSearch::Outcome GangSearch::Run(std::vector<PlacedPod>& placed) {
  if (!Prepare()) return Outcome::kUndecided;
  if (CannotFit()) return Outcome::kNone;
  const std::vector<size_t> easiest = EasiestThatSuffice();
  if (!easiest.empty() && PlaceInOrder(easiest, placed)) return Outcome::kFound;
  if (unit_.pods.size() > kMaxSearchedPods) return Outcome::kUndecided;
  if (PlaceRest(0, 0, 0, placed)) return Outcome::kFound;
  return budget_.looks_left == 0 || looks_at_pods_ ? Outcome::kUndecided : Outcome::kNone;
}

std::vector<size_t> GangSearch::Easiest() {
  Prepare();
  return EasiestThatSuffice();
}

bool GangSearch::Prepare() {
  MakeKinds();
  for (Kind& kind : kinds_) {
    if (!budget_.Take(1 + finder_.snapshot().node_slots() / kNodesPerLook)) return false;
    Measure(kind);
  }
  std::stable_sort(kinds_.begin(), kinds_.end(),
                   [](const Kind& a, const Kind& b) { return a.capacity < b.capacity; });
  return true;
}

void GangSearch::MakeKinds() {
  std::map<std::tuple<cluster::ShapeIndex, LookIndex, size_t, size_t>, size_t> known;
  for (size_t position = 0; position < unit_.pods.size(); ++position) {
    const QueuedPod& pod = unit_.pods[position];
    const LookIndex look = finder_.pod_rules().LookOf(pod.shape, pod.identity);
    const auto [at, added] =
        known.try_emplace({pod.shape, look, pod.task, pod.sub_group}, kinds_.size());
    if (added) {
      Kind& kind = kinds_.emplace_back();
      kind.shape = pod.shape;
      kind.look = look;
      kind.task = pod.task;
      kind.sub_group = pod.sub_group;
      looks_at_pods_ |= look != kNoIndex;
      nodes_are_alike_ &= look == kNoIndex && !finder_.snapshot().Shape(pod.shape).names_nodes;
    }
    kinds_[at->second].pods.push_back(position);
  }
}

void GangSearch::Measure(Kind& kind) {
  const ClusterSnapshot& snapshot = finder_.snapshot();
  const cluster::Shape& shape = snapshot.Shape(kind.shape);
  NodeFilter filter(snapshot, shape);
  for (NodeIndex node = 0; node < snapshot.node_slots(); ++node) {
    if (!snapshot.HasNode(node) || !snapshot.FitsAmounts(shape, node) || !filter.Passes(node))
      continue;
    kind.nodes.push_back(node);
    int64_t room = kMaxRoom;
    for (const cluster::ResourceAmount& request : shape.requests)
      room = std::min(room, snapshot.Free(node, request.resource) / request.amount);
    kind.capacity += room;
  }
}

// Proofs that cost little; a gang that waits for room is mostly refused by one of them.
bool GangSearch::CannotFit() const {
  const ClusterSnapshot& snapshot = finder_.snapshot();
  if (!CouldSuffice(0, {})) return true;
  for (ResourceIndex resource = 0; resource < snapshot.resource_count(); ++resource) {
    if (!HasFree(snapshot, resource, LeastAskedFor(unit_, snapshot, resource))) return true;
  }
  return false;
}

std::vector<size_t> GangSearch::EasiestThatSuffice() const {
  if (!unit_.sub_groups.empty()) return SomeThatSuffice();
  std::vector<size_t> taken(kinds_.size(), 0);
  int64_t missing = unit_.Needed();
  const auto take = [&](size_t kind, int64_t wanted) {
    const int64_t more =
        std::min(static_cast<int64_t>(kinds_[kind].pods.size() - taken[kind]), wanted);
    taken[kind] += static_cast<size_t>(more);
    missing -= more;
    return more;
  };
  for (size_t task = 0; task < unit_.tasks.size(); ++task) {
    int64_t of_task = unit_.tasks[task].Needed();
    for (size_t kind = kinds_.size(); kind-- > 0;) {
      if (kinds_[kind].task == task) of_task -= take(kind, of_task);
    }
  }
  for (size_t kind = kinds_.size(); kind-- > 0;) take(kind, missing);
  std::vector<size_t> positions;
  for (size_t kind = 0; kind < kinds_.size(); ++kind) {
    const std::vector<size_t>& pods = kinds_[kind].pods;
    positions.insert(positions.end(), pods.begin(),
                     pods.begin() + static_cast<ptrdiff_t>(taken[kind]));
  }
  return positions;
}

// With sub-groups, not the easiest but the first ones; none if they are not that simple to choose.
std::vector<size_t> GangSearch::SomeThatSuffice() const {
  std::vector<size_t> positions;
  const std::vector<bool> none(unit_.pods.size(), false), all(unit_.pods.size(), true);
  const std::optional<std::vector<bool>> enough = ChooseEnough(unit_, none, all);
  if (!enough.has_value()) return positions;
  for (const Kind& kind : kinds_) {
    std::copy_if(kind.pods.begin(), kind.pods.end(), std::back_inserter(positions),
                 [&](size_t position) { return (*enough)[position]; });
  }
  return positions;
}

bool GangSearch::PlaceInOrder(const std::vector<size_t>& positions,
                              std::vector<PlacedPod>& placed) {
  for (const size_t position : positions) {
    const QueuedPod& pod = unit_.pods[position];
    const NodeIndex node = finder_.Best(pod.shape, pod.identity);
    if (node == kNoIndex) {
      TakeBack(placed);
      return false;
    }
    placed.push_back(Place(position, node));
  }
  return true;
}

bool GangSearch::PlaceRest(size_t index, size_t used, size_t first,
                           std::vector<PlacedPod>& placed) {
  if (index == kinds_.size()) return true;
  const Kind& kind = kinds_[index];
  // As few of the hard ones as will do.
  if (CouldSuffice(index + 1, placed) && PlaceRest(index + 1, 0, 0, placed)) return true;
  if (used == kind.pods.size()) return false;
  std::vector<NodeIndex> tried;
  for (size_t at = first; at < kind.nodes.size(); ++at) {
    const NodeIndex node = kind.nodes[at];
    if (!budget_.Take(1 + tried.size())) return false;
    if (!Takes(kind, node) || IsLikeOneOf(tried, node)) continue;
    if (!budget_.Take(kLooksPerPlacement)) return false;
    tried.push_back(node);
    placed.push_back(Place(kind.pods[used], node));
    if (PlaceRest(index, used + 1, at, placed)) return true;
    finder_.Remove(placed.back().placement);
    placed.pop_back();
  }
  return false;
}

// Enough could still be placed with pods of kinds from `from` on only.
bool GangSearch::CouldSuffice(size_t from, const std::vector<PlacedPod>& placed) const {
  int64_t most = 0;
  std::vector<int64_t> of_task(unit_.tasks.size(), 0);
  std::vector<int64_t> of_group(unit_.sub_groups.groups.size(), 0), placed_of(of_group);
  const auto add = [&](size_t task, size_t sub_group, int64_t pods) {
    most += pods;
    if (task != kNoTask) of_task[task] += pods;
    if (sub_group != kNoSubGroup) of_group[sub_group] += pods;
  };
  for (const PlacedPod& each : placed) {
    const QueuedPod& pod = unit_.pods[each.pod];
    add(pod.task, pod.sub_group, 1);
    if (pod.sub_group != kNoSubGroup) ++placed_of[pod.sub_group];
  }
  for (size_t later = from; later < kinds_.size(); ++later) {
    const Kind& kind = kinds_[later];
    add(kind.task, kind.sub_group, std::min(static_cast<int64_t>(kind.pods.size()), kind.capacity));
  }
  // Of what cannot be whole nothing can be placed.
  for (size_t group = 0; group < of_group.size(); ++group) {
    if (of_group[group] >= unit_.sub_groups.groups[group].Needed()) continue;
    if (placed_of[group] > 0) return false;
    most -= std::exchange(of_group[group], 0);
  }
  if (!of_group.empty() && !unit_.sub_groups.Suffices(of_group)) return false;
  if (most < needed_) return false;
  for (size_t task = 0; task < of_task.size(); ++task) {
    if (of_task[task] < unit_.tasks[task].Needed()) return false;
  }
  return true;
}

bool GangSearch::Takes(const Kind& kind, NodeIndex node) const {
  if (!finder_.snapshot().FitsAmounts(finder_.snapshot().Shape(kind.shape), node)) return false;
  if (kind.look == kNoIndex) return true;
  const PodRules& rules = finder_.pod_rules();
  return rules.CheckPorts(kind.look, node) == Rule::kPasses &&
         rules.CheckTopology(kind.look, node) == Rule::kPasses;
}

bool GangSearch::IsLikeOneOf(const std::vector<NodeIndex>& nodes, NodeIndex node) const {
  const ClusterSnapshot& snapshot = finder_.snapshot();
  return nodes_are_alike_ && std::any_of(nodes.begin(), nodes.end(), [&](NodeIndex other) {
           return snapshot.ClassOf(other) == snapshot.ClassOf(node) &&
                  std::ranges::equal(snapshot.FreeRow(other), snapshot.FreeRow(node)) &&
                  snapshot.SharesAlike(other, node);
         });
}

PlacedPod GangSearch::Place(size_t position, NodeIndex node) {
  const QueuedPod& pod = unit_.pods[position];
  return {position,
          finder_.Place(pod.shape, node, pod.holder,
                        finder_.PickDevices(pod.shape, pod.identity, node), pod.identity)};
}

void GangSearch::TakeBack(std::vector<PlacedPod>& placed) {
  for (; !placed.empty(); placed.pop_back()) finder_.Remove(placed.back().placement);
}

}  // namespace muster::scheduler
