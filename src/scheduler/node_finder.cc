#include "scheduler/node_finder.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/check.h"
#include "base/strings.h"
#include "scheduler/linked_nodes.h"
#include "scheduler/rules.h"

namespace muster::scheduler {

using cluster::kNoIndex;
using cluster::NodeIndex;

namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
constexpr NodeOrder kNothingOutside{kMax, kMax};
constexpr uint64_t kIndexMask = (uint64_t{1} << kIndexBits) - 1;
constexpr uint64_t kFreeMask = (uint64_t{1} << (kDeviceBits + kCpuBits)) - 1;

uint64_t Saturate(int64_t value, int bits) {
  const int64_t most = (int64_t{1} << bits) - 1;
  return static_cast<uint64_t>(std::clamp<int64_t>(value, 0, most));
}

// The resources that are counted in whole devices of their own: shares are of GPUs that count
// already, and hugepages are memory.
std::vector<cluster::ResourceIndex> WholeDevices(const cluster::ClusterSnapshot& snapshot) {
  std::vector<cluster::ResourceIndex> resources;
  for (cluster::ResourceIndex index = 0; index < snapshot.resource_count(); ++index) {
    const std::string& name = snapshot.ResourceName(index);
    if (cluster::IsExtendedResource(name) && name != cluster::resource::kGpuMilli)
      resources.push_back(index);
  }
  return resources;
}

NodeIndex NodeOf(const NodeOrder& order) {
  return static_cast<NodeIndex>(order.fullness & kIndexMask);
}

NodeOrder WithNode(const NodeOrder& order, NodeIndex node) {
  return {order.choice, (order.fullness & ~kIndexMask) | node};
}

void Push(std::vector<NodeOrder>& heap, const NodeOrder& order) {
  heap.push_back(order);
  std::push_heap(heap.begin(), heap.end(), std::greater<>());
}

void Pop(std::vector<NodeOrder>& heap) {
  std::pop_heap(heap.begin(), heap.end(), std::greater<>());
  heap.pop_back();
}

}  // namespace

NodeFinder::NodeFinder(cluster::ClusterSnapshot& snapshot, std::shared_ptr<const Packing> packing)
    : snapshot_(snapshot),
      pod_rules_(snapshot),
      packing_(snapshot, std::move(packing)),
      image_nodes_(snapshot),
      whole_devices_(WholeDevices(snapshot)),
      by_shape_(snapshot.shape_slots()),
      changed_at_(snapshot.node_slots(), 0),
      older_(snapshot.node_slots(), kNoIndex),
      newer_(snapshot.node_slots(), kNoIndex) {
  CHECK(snapshot.node_slots() <= kMaxNodes);
  for (cluster::ClassIndex index = 0; index < snapshot.class_slots(); ++index)
    has_unwelcoming_taints_ |= cluster::CountUnwelcome(snapshot.Class(index).taints, {}) > 0;
}

NodeOrder NodeFinder::OrderOf(const Candidates& candidates, const cluster::Shape& shape,
                              NodeIndex node) {
  const Reluctance reluctance =
      candidates.preferences == nullptr ? Reluctance{} : candidates.preferences->Of(node);
  const bool spreads = shape.constraints.profile == cluster::Profile::kSpread;
  const uint64_t price = spreads ? 0 : packing_.Price(candidates.ask, node);
  uint64_t unwanted = 0;
  int64_t devices = 0;
  if (shape.device_resource != kNoIndex) {
    devices = snapshot_.Free(node, shape.device_resource);
  } else if (snapshot_.HasDevices(node)) {
    unwanted = 1;
    // Less than nothing is free where a node shrank.
    for (const cluster::ResourceIndex resource : whole_devices_)
      devices += std::max<int64_t>(snapshot_.Free(node, resource), 0);
  }
  const uint64_t splits = SplitsLinks(snapshot_, shape, node) ? 1 : 0;
  uint64_t choice = reluctance.stated;
  choice = choice << 2 | unwanted << 1 | splits;
  choice = choice << kImpliedBits | reluctance.implied;
  choice = choice << kPriceBits | price;
  uint64_t free = Saturate(devices, kDeviceBits) << kCpuBits |
                  Saturate(snapshot_.Free(node, cluster::kCpuIndex), kCpuBits);
  if (spreads) free ^= kFreeMask;
  return {choice, free << kIndexBits | node};
}

bool NodeFinder::Passes(Candidates& candidates, const cluster::Shape& shape, NodeIndex node) {
  const cluster::ClassIndex index = snapshot_.ClassOf(node);
  const auto check = [&] {
    return CheckRules(shape, snapshot_.Class(index), snapshot_.Node(node).labels_view()).rule ==
           Rule::kPasses;
  };
  if (shape.names_nodes) return check();
  Tristate& passes = candidates.class_passes[index];
  if (passes == Tristate::kUnknown) passes = check() ? Tristate::kYes : Tristate::kNo;
  return passes == Tristate::kYes;
}

// Amounts and other pods: what changes while pods are placed.
bool NodeFinder::HasRoom(const Candidates& candidates, const cluster::Shape& shape,
                         NodeIndex node) const {
  if (!snapshot_.FitsAmounts(shape, node)) return false;
  return candidates.look == kNoIndex ||
         (pod_rules_.CheckPorts(candidates.look, node) == Rule::kPasses &&
          pod_rules_.CheckTopology(candidates.look, node) == Rule::kPasses);
}

bool NodeFinder::Takes(Candidates& candidates, const cluster::Shape& shape, NodeIndex node) {
  return HasRoom(candidates, shape, node) && Passes(candidates, shape, node);
}

bool NodeFinder::AreAlike(NodeIndex a, NodeIndex b) const {
  return snapshot_.ClassOf(a) == snapshot_.ClassOf(b) &&
         snapshot_.HasDevices(a) == snapshot_.HasDevices(b) &&
         snapshot_.MostJoined(a) == snapshot_.MostJoined(b) &&
         std::ranges::equal(snapshot_.FreeRow(a), snapshot_.FreeRow(b)) &&
         snapshot_.SharesAlike(a, b);
}

void NodeFinder::MakeGroups() {
  has_groups_ = true;
  std::unordered_multimap<uint64_t, size_t> by_hash;
  for (NodeIndex node = 0; node < snapshot_.node_slots(); ++node) {
    if (!snapshot_.HasNode(node) || changed_at_[node] != 0) continue;
    const std::span<const int64_t> row = snapshot_.FreeRow(node);
    const std::string_view bytes(reinterpret_cast<const char*>(row.data()), row.size_bytes());
    const uint64_t hash = Hash64(bytes, snapshot_.ClassOf(node));
    const auto [begin, end] = by_hash.equal_range(hash);
    const auto same = std::find_if(begin, end, [&](const auto& entry) {
      return AreAlike(groups_[entry.second].nodes.front(), node);
    });
    if (same != end) {
      groups_[same->second].nodes.push_back(node);
    } else {
      by_hash.emplace(hash, groups_.size());
      groups_.push_back({{node}, 0});
    }
  }
}

NodeOrder NodeFinder::CollectFromNodes(Candidates& candidates, const cluster::Shape& shape) {
  for (NodeIndex node = 0; node < snapshot_.node_slots(); ++node) {
    if (!snapshot_.HasNode(node) || !Takes(candidates, shape, node)) continue;
    scratch_.push_back(OrderOf(candidates, shape, node));
  }
  return kNothingOutside;
}

NodeOrder NodeFinder::CollectFromGroups(Candidates& candidates, const cluster::Shape& shape) {
  if (!has_groups_) MakeGroups();
  for (NodeIndex node = newest_; node != kNoIndex; node = older_[node]) {
    if (Takes(candidates, shape, node)) scratch_.push_back(OrderOf(candidates, shape, node));
  }
  feasible_groups_.clear();
  for (size_t index = 0; index < groups_.size(); ++index) {
    StateGroup& group = groups_[index];
    while (group.first < group.nodes.size() && changed_at_[group.nodes[group.first]] != 0)
      ++group.first;
    if (group.first == group.nodes.size()) continue;
    const NodeIndex node = group.nodes[group.first];
    if (!Takes(candidates, shape, node)) continue;
    feasible_groups_.emplace_back(OrderOf(candidates, shape, node), index);
  }
  std::sort(feasible_groups_.begin(), feasible_groups_.end());

  // Nodes of a group differ in the index alone, so groups that differ above the index can be taken
  // one after another; those that do not are taken together.
  NodeOrder bound = kNothingOutside;
  size_t taken = 0;
  for (size_t i = 0; i < feasible_groups_.size(); ++i) {
    const auto [order, index] = feasible_groups_[i];
    const bool new_level =
        i == 0 || WithNode(order, 0) != WithNode(feasible_groups_[i - 1].first, 0);
    if (new_level && (taken >= candidates.limit || bound != kNothingOutside))
      return std::min(bound, order);
    const StateGroup& group = groups_[index];
    size_t from_group = 0;
    for (size_t at = group.first; at < group.nodes.size(); ++at) {
      if (changed_at_[group.nodes[at]] != 0) continue;
      const NodeOrder node_order = WithNode(order, group.nodes[at]);
      if (from_group++ == candidates.limit) {
        bound = std::min(bound, node_order);
        break;
      }
      scratch_.push_back(node_order);
      ++taken;
    }
  }
  return bound;
}

void NodeFinder::Prefer(Candidates& candidates, const cluster::Shape& shape) {
  PodRules::Preferred relations = pod_rules_.PreferredOf(candidates.look);
  std::vector<uint8_t> images;
  if (snapshot_.KnowsImages()) images = image_nodes_.Scores(shape.constraints.images);
  if (relations.empty() && images.empty() && !has_unwelcoming_taints_ &&
      shape.constraints.affinity.preferred.empty()) {
    return;
  }
  std::vector<uint8_t> admitted(snapshot_.node_slots(), 0);
  for (NodeIndex node = 0; node < snapshot_.node_slots(); ++node)
    admitted[node] = snapshot_.HasNode(node) && Passes(candidates, shape, node) ? 1 : 0;
  candidates.moved = pod_rules_.Moved(candidates.look);
  candidates.preferences =
      std::make_unique<Preferences>(snapshot_, shape, std::move(relations), images, admitted);
}

bool NodeFinder::IsOutdated(Candidates& candidates) {
  bool outdated = candidates.loosened != pod_rules_.Loosened(candidates.look);
  const uint64_t moved = pod_rules_.Moved(candidates.look);
  if (candidates.moved != moved) {
    candidates.moved = moved;
    // Nodes that changed themselves are looked at anyway.
    outdated |= candidates.preferences->Update(
        [&](NodeIndex node) { return changed_at_[node] > candidates.seen; });
  }
  return outdated;
}

void NodeFinder::Scan(Candidates& candidates, const cluster::Shape& shape) {
  if (!candidates.scanned) Prefer(candidates, shape);
  candidates.scanned = true;
  candidates.loosened = pod_rules_.Loosened(candidates.look);
  candidates.seen = clock_;
  scratch_.clear();
  const bool one_by_one = shape.names_nodes || candidates.look != kNoIndex ||
                          (candidates.preferences && !candidates.preferences->GoByClass());
  candidates.bound =
      one_by_one ? CollectFromNodes(candidates, shape) : CollectFromGroups(candidates, shape);
  if (scratch_.size() > candidates.limit) {
    const auto cut = scratch_.begin() + static_cast<ptrdiff_t>(candidates.limit);
    std::nth_element(scratch_.begin(), cut, scratch_.end());
    candidates.bound = std::min(candidates.bound, *cut);
    scratch_.erase(cut, scratch_.end());
  }
  candidates.heap.assign(scratch_.begin(), scratch_.end());
  std::make_heap(candidates.heap.begin(), candidates.heap.end(), std::greater<>());
}

// The heap ran dry or silted up: the next one is larger.
void NodeFinder::FillAgain(Candidates& candidates, const cluster::Shape& shape) {
  candidates.limit = std::min(candidates.limit * 2, kMaxCandidates);
  Scan(candidates, shape);
}

void NodeFinder::TakeInChanges(Candidates& candidates, const cluster::Shape& shape) {
  for (NodeIndex node = newest_; node != kNoIndex && changed_at_[node] > candidates.seen;
       node = older_[node]) {
    if (Takes(candidates, shape, node)) Push(candidates.heap, OrderOf(candidates, shape, node));
  }
  candidates.seen = clock_;
}

NodeFinder::Candidates& NodeFinder::CandidatesOf(cluster::ShapeIndex shape,
                                                 cluster::IdentityIndex identity) {
  const LookIndex look = pod_rules_.LookOf(shape, identity);
  if (look == kNoIndex && shape >= by_shape_.size()) by_shape_.resize(shape + 1);
  if (look != kNoIndex && look >= by_look_.size()) by_look_.resize(look + 1);
  Candidates& candidates = look == kNoIndex ? by_shape_[shape] : by_look_[look];
  if (candidates.class_passes.empty()) {
    candidates.look = look;
    candidates.class_passes.assign(snapshot_.class_slots(), Tristate::kUnknown);
    candidates.ask = packing_.AskFor(snapshot_.Shape(shape));
  }
  return candidates;
}

bool NodeFinder::Takes(cluster::ShapeIndex shape, cluster::IdentityIndex identity, NodeIndex node) {
  if (!snapshot_.HasNode(node)) return false;
  return Takes(CandidatesOf(shape, identity), snapshot_.Shape(shape), node);
}

NodeIndex NodeFinder::Best(cluster::ShapeIndex index, cluster::IdentityIndex identity) {
  Candidates& candidates = CandidatesOf(index, identity);
  const cluster::Shape& shape = snapshot_.Shape(index);
  if (!candidates.scanned || IsOutdated(candidates)) Scan(candidates, shape);
  TakeInChanges(candidates, shape);
  // Entries of changes that were overtaken pile up; a pass clears them.
  if (candidates.heap.size() > 2 * candidates.limit + kFirstCandidates)
    FillAgain(candidates, shape);
  const bool moves = candidates.preferences && candidates.preferences->Move();
  while (true) {
    // Beyond the bound a node outside the heap may be better.
    if (candidates.heap.empty() || candidates.heap.front() > candidates.bound) {
      if (candidates.bound == kNothingOutside) return kNoIndex;
      FillAgain(candidates, shape);
      if (candidates.heap.empty()) return kNoIndex;
    }
    const NodeOrder best = candidates.heap.front();
    const NodeIndex node = NodeOf(best);
    const bool has_room = HasRoom(candidates, shape, node);
    const NodeOrder now = has_room ? OrderOf(candidates, shape, node) : kNothingOutside;
    if (now == best) return node;
    while (!candidates.heap.empty() && candidates.heap.front() == best) Pop(candidates.heap);
    // It may have become less preferred without a change of its own.
    if (moves && has_room && now > best) Push(candidates.heap, now);
  }
}

void NodeFinder::Touch(NodeIndex node) {
  packing_.Touch(node);
  changed_at_[node] = ++clock_;
  if (newest_ == node) return;
  if (newer_[node] != kNoIndex) older_[newer_[node]] = older_[node];
  if (older_[node] != kNoIndex) newer_[older_[node]] = newer_[node];
  older_[node] = newest_;
  newer_[node] = kNoIndex;
  if (newest_ != kNoIndex) newer_[newest_] = node;
  newest_ = node;
}

cluster::DeviceSet NodeFinder::PickDevices(cluster::ShapeIndex index,
                                           cluster::IdentityIndex identity, NodeIndex node) {
  const cluster::Shape& shape = snapshot_.Shape(index);
  if (shape.gpu_milli == 0) return snapshot_.PickDevices(shape, node);
  const PackingView::Ask& ask = CandidatesOf(index, identity).ask;
  return snapshot_.PickDevices(shape, node, packing_.ShareOf(ask, node));
}

cluster::PlacementIndex NodeFinder::Place(cluster::ShapeIndex shape, NodeIndex node,
                                          cluster::HolderIndex holder,
                                          const cluster::DeviceSet& devices,
                                          cluster::IdentityIndex identity) {
  const cluster::PlacementIndex placement = snapshot_.Place(shape, node, holder, devices, identity);
  pod_rules_.Placed(snapshot_.At(placement));
  Touch(node);
  return placement;
}

void NodeFinder::Remove(cluster::PlacementIndex placement) {
  Touch(snapshot_.At(placement).node);
  pod_rules_.Removed(snapshot_.At(placement));
  snapshot_.Remove(placement);
}

}  // namespace muster::scheduler
