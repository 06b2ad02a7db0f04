// src/scheduler/node_finder.h
//
// NodeFinder: the best node for a pod of a given shape, over and over, while pods are placed and
// taken back.
//
// For each shape it keeps a heap of the best feasible nodes found by one pass over all of them, a
// bound that no other node beats, and how much of the history of changes the heap has seen. The
// next question for that shape looks only at the nodes that changed since; when the heap runs dry,
// one more pass fills it.
// A pass looks at nodes in equal state (class and free amounts) once: most
// nodes of a large cluster look alike.
// Pods that look at other pods (pod_rules.h) have a heap of their own for each look. What a change
// opens or closes for them on its own node is like any other change; when it may have opened other
// nodes, or made them more preferred (preferences.h), a pass over all nodes one by one fills the
// heap again. Nodes that became less preferred are put back where they belong once they come up.
//
// Life cycle: made for one working copy of a snapshot; every change to that copy goes through it.
// Thread:     any, not shared.
// Invariants: Best() is exactly the first node in the order of planner.h among all that take the
//             pod.
// Cost:       O(different states + changed nodes) for the first question of a shape; then O(log
//             nodes) for each node changed in between; O(nodes) after a change that may open nodes
//             elsewhere.

#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "cluster/snapshot.h"
#include "scheduler/packing_view.h"
#include "scheduler/pod_rules.h"
#include "scheduler/preferences.h"

namespace muster::scheduler {

// Feasible nodes kept per shape: at first, and after many passes.
inline constexpr size_t kFirstCandidates = 64;
inline constexpr size_t kMaxCandidates = 4096;

inline constexpr int kIndexBits = 24;
inline constexpr int kCpuBits = 25;
inline constexpr int kDeviceBits = 13;
inline constexpr int kPriceBits = 32;
inline constexpr int kImpliedBits = 10;
inline constexpr int kStatedBits = 20;
inline constexpr size_t kMaxNodes = size_t{1} << kIndexBits;

// The place of a node in the order for a shape, smaller is better: two numbers, so that comparing
// is cheap. Values that are too large saturate.
struct NodeOrder {
  // From the top: stated reluctance (preferences.h); one bit "has devices that the pod does not
  // want"; one bit "its devices would not be joined by NVLinks" (linked_nodes.h); implied
  // reluctance; what placing the pod there costs the pods to come.
  uint64_t choice = 0;
  // From the top: free whole devices, free cpu in milli-cores (what is not free of them, in
  // profiles that spread), node index.
  uint64_t fullness = 0;
  auto operator<=>(const NodeOrder&) const = default;
};
static_assert(kStatedBits + 2 + kImpliedBits + kPriceBits <= 64);
static_assert(kDeviceBits + kCpuBits + kIndexBits <= 64);

class NodeFinder {
 public:
  // REQUIRES: snapshot.node_slots() <= kMaxNodes.
  explicit NodeFinder(cluster::ClusterSnapshot& snapshot,
                      std::shared_ptr<const Packing> packing = nullptr);

  // kNoIndex if no node takes a pod of this shape. Without an identity, no selector finds the pod.
  cluster::NodeIndex Best(cluster::ShapeIndex shape,
                          cluster::IdentityIndex identity = cluster::kNoIndex);

  // That node would take such a pod now.
  bool Takes(cluster::ShapeIndex shape, cluster::IdentityIndex identity, cluster::NodeIndex node);

  // The devices that a pod of the shape gets there. REQUIRES: as ClusterSnapshot::PickDevices().
  cluster::DeviceSet PickDevices(cluster::ShapeIndex shape, cluster::IdentityIndex identity,
                                 cluster::NodeIndex node);

  cluster::PlacementIndex Place(cluster::ShapeIndex shape, cluster::NodeIndex node,
                                cluster::HolderIndex holder, const cluster::DeviceSet& devices,
                                cluster::IdentityIndex identity = cluster::kNoIndex);
  void Remove(cluster::PlacementIndex placement);

  cluster::ClusterSnapshot& snapshot() { return snapshot_; }
  const cluster::ClusterSnapshot& snapshot() const { return snapshot_; }
  PodRules& pod_rules() { return pod_rules_; }

 private:
  enum class Tristate : uint8_t { kUnknown, kNo, kYes };

  struct Candidates {
    bool scanned = false;
    std::vector<NodeOrder> heap;  // smallest first
    NodeOrder bound;              // nodes outside the heap that did not change since are not before
    uint64_t seen = 0;            // changes up to this one are in the heap
    size_t limit = kFirstCandidates;
    LookIndex look = cluster::kNoIndex;        // of pods that look at others
    uint64_t loosened = 0;                     // PodRules::Loosened() at the last pass
    std::vector<Tristate> class_passes;        // by class
    std::unique_ptr<Preferences> preferences;  // null: all nodes are as good
    uint64_t moved = 0;                        // PodRules::Moved() as far as they know
    PackingView::Ask ask;
  };

  // Nodes that were in one state when the groups were made. Those that changed since are looked at
  // one by one.
  struct StateGroup {
    std::vector<cluster::NodeIndex> nodes;  // ascending
    size_t first = 0;                       // those before it have changed
  };

  NodeOrder OrderOf(const Candidates& candidates, const cluster::Shape& shape,
                    cluster::NodeIndex node);
  Candidates& CandidatesOf(cluster::ShapeIndex shape, cluster::IdentityIndex identity);
  bool Takes(Candidates& candidates, const cluster::Shape& shape, cluster::NodeIndex node);
  bool HasRoom(const Candidates& candidates, const cluster::Shape& shape,
               cluster::NodeIndex node) const;
  bool Passes(Candidates& candidates, const cluster::Shape& shape, cluster::NodeIndex node);
  void Prefer(Candidates& candidates, const cluster::Shape& shape);
  // Some node that the heap does not show has come before those that it shows.
  bool IsOutdated(Candidates& candidates);
  void Scan(Candidates& candidates, const cluster::Shape& shape);
  void FillAgain(Candidates& candidates, const cluster::Shape& shape);
  void MakeGroups();
  bool AreAlike(cluster::NodeIndex a, cluster::NodeIndex b) const;
  // Both put feasible nodes into scratch_ and return an order that none of the others beats.
  NodeOrder CollectFromNodes(Candidates& candidates, const cluster::Shape& shape);
  NodeOrder CollectFromGroups(Candidates& candidates, const cluster::Shape& shape);
  void TakeInChanges(Candidates& candidates, const cluster::Shape& shape);
  void Touch(cluster::NodeIndex node);

  cluster::ClusterSnapshot& snapshot_;
  PodRules pod_rules_;
  PackingView packing_;
  ImageNodes image_nodes_;
  const std::vector<cluster::ResourceIndex> whole_devices_;
  bool has_unwelcoming_taints_ = false;  // PreferNoSchedule
  std::vector<Candidates> by_shape_;     // of pods that look at no others
  std::deque<Candidates> by_look_;
  std::vector<NodeOrder> scratch_;
  bool has_groups_ = false;
  std::vector<StateGroup> groups_;
  std::vector<std::pair<NodeOrder, size_t>>
      feasible_groups_;  // scratch: order of the first node, group
  // Nodes from the last changed to the first, as a linked list over indexes.
  uint64_t clock_ = 0;
  cluster::NodeIndex newest_ = cluster::kNoIndex;
  std::vector<uint64_t> changed_at_;  // 0: never
  std::vector<cluster::NodeIndex> older_, newer_;
};

}  // namespace muster::scheduler
