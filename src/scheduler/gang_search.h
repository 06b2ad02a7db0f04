// src/scheduler/gang_search.h
//
// GangSearch: a place for a gang of pods that differ, where placing them in the order of their
// creation fails. Two questions are open then: which pods, if not all are needed, and in which
// order.
//
// Pods of one shape, look at other pods, task and sub-group are of one kind. A kind is the harder,
// the fewer of it the cluster takes now. First try: the easiest pods that suffice (with sub-groups
// the first ones), from the hardest kind on, each on its best node. If that fails, too, every
// choice is tried, kind by kind, node by node, where nodes in equal state count as one, until the
// budget is used up.
//
// Life cycle: made for one attempt on a NodeFinder's working copy.
// Thread:     any, not shared.
// Invariants: a failed search leaves the working copy as it was; within its bounds a gang whose
//             pods look at no others is placed if any placement of it exists; the same inputs give
//             the same placements.

#pragma once

#include <cstdint>
#include <vector>

#include "cluster/snapshot.h"
#include "scheduler/node_finder.h"
#include "scheduler/queue.h"

namespace muster::scheduler {

struct PlacedPod {
  size_t pod = 0;  // position in Unit::pods
  cluster::PlacementIndex placement = cluster::kNoIndex;
};

// Nodes that all searches of a plan together may look at: some milliseconds. Gangs beyond it, and
// those with more pods than this, are tried in the two simple orders only.
inline constexpr size_t kMaxSearchLooks = 200'000;
inline constexpr size_t kMaxSearchedPods = 256;

struct SearchBudget {
  size_t looks_left = kMaxSearchLooks;
  // False, and nothing is left, if these are too many.
  bool Take(size_t looks);
};

// The least of the resource that any pods that suffice ask for.
int64_t LeastAskedFor(const Unit& unit, const cluster::ClusterSnapshot& snapshot,
                      cluster::ResourceIndex resource);
// All nodes together have so much of it free.
bool HasFree(const cluster::ClusterSnapshot& snapshot, cluster::ResourceIndex resource,
             int64_t wanted);

class GangSearch {
 public:
  enum class Outcome : uint8_t { kFound, kNone, kUndecided };

  // REQUIRES: the arguments outlive it.
  GangSearch(const Unit& unit, NodeFinder& finder, SearchBudget& budget);

  // Places pods that suffice and adds them to `placed`. REQUIRES: `placed` is empty.
  Outcome Run(std::vector<PlacedPod>& placed);
  // The easiest pods that suffice, the hardest of them first: positions in Unit::pods.
  std::vector<size_t> Easiest();

 private:
  struct Kind {
    cluster::ShapeIndex shape = cluster::kNoIndex;
    LookIndex look = cluster::kNoIndex;
    size_t task = kNoTask;
    size_t sub_group = kNoSubGroup;
    std::vector<size_t> pods;               // positions in Unit::pods
    std::vector<cluster::NodeIndex> nodes;  // that have room for one now
    int64_t capacity = 0;                   // how many of its pods they have room for
  };

  // False if the budget does not allow it.
  bool Prepare();
  void MakeKinds();
  void Measure(Kind& kind);
  bool CannotFit() const;
  std::vector<size_t> EasiestThatSuffice() const;
  std::vector<size_t> SomeThatSuffice() const;
  bool PlaceInOrder(const std::vector<size_t>& positions, std::vector<PlacedPod>& placed);
  // Goes on with kind `index`, of which `used` pods are placed, on its nodes from `first` on.
  bool PlaceRest(size_t index, size_t used, size_t first, std::vector<PlacedPod>& placed);
  bool CouldSuffice(size_t from, const std::vector<PlacedPod>& placed) const;
  bool Takes(const Kind& kind, cluster::NodeIndex node) const;
  bool IsLikeOneOf(const std::vector<cluster::NodeIndex>& nodes, cluster::NodeIndex node) const;
  PlacedPod Place(size_t position, cluster::NodeIndex node);
  void TakeBack(std::vector<PlacedPod>& placed);

  const Unit& unit_;
  NodeFinder& finder_;
  SearchBudget& budget_;
  const int64_t needed_;         // unit_.Needed()
  std::vector<Kind> kinds_;      // the hardest first
  bool looks_at_pods_ = false;   // some pod does: the order may matter, and one is tried
  bool nodes_are_alike_ = true;  // false: some pod looks at names of nodes, or at pods on them
};

}  // namespace muster::scheduler
