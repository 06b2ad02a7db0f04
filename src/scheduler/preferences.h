// src/scheduler/preferences.h
//
// Preferences: how much a pod would rather not have a node, for each node that takes it. It never
// decides whether a node takes the pod, and it comes before packing.
//
// The scores are kube-scheduler's (v1.32), each 0 to 100 with its weight; what they take away from
// 100 is summed up on two levels, smaller is better:
//
//   stated   3 x taints + 2 x node affinity + 2 x pod affinity + 2 x spread
//   implied  2 x spread of the profile + 1 x images
//
//   taints         100 - 100 t / max t;  t: PreferNoSchedule taints that the pod does not tolerate
//   node affinity  100 a / max a;  a: weights of the preferred terms that the node matches
//   pod affinity   100 (p - min p) / (max p - min p);  p: over the pods in the node's domains, the
//                  weights of the pod's preferred terms that mean them and of their preferred terms
//                  that mean the pod (those of anti-affinity negative), and 1 for each of their
//                  required affinity terms that means it
//   spread         100 (max s + min s - s) / max s;  s: over the ScheduleAnyway constraints, pods
//                  in the node's domain x ln(domains + 2) + maxSkew - 1, rounded; 0 for a node that
//                  lacks a label which the pod's constraints name
//   images         100 (b - 23 Mi) / (1000 Mi x containers - 23 Mi), within 0 and 100;  b: over the
//                  containers, size of the image if the node has it x share of nodes that have it
//
// Integer divisions; where the divisor is 0, 100 for taints and spread and 0 for the rest. Unlike
// upstream, where extremes and domains are taken over the nodes that take the pod at the moment,
// here they are taken over all whose own state admits it (cordon, taints, required node affinity):
// so a node that fills up changes nothing between the others, and most placements change no score.
// What the pod states comes before keeping off devices that it does not want, what is implied after
// that (node_finder.h).
//
// Life cycle: made for one shape and what it asks of other pods, when a node is first sought.
// Thread:     any, not shared.
// Invariants: after Update(), Of() is what a look at all nodes and pods would give.
// Cost:       made in O(nodes); Update() in O(domains x terms); Of() in O(1).

#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "cluster/snapshot.h"
#include "scheduler/pod_rules.h"

namespace muster::scheduler {

struct Reluctance {
  uint16_t stated = 0;   // up to 900
  uint16_t implied = 0;  // up to 300
  auto operator<=>(const Reluctance&) const = default;
};

// Which nodes have an image, looked up once for all shapes that need it.
class ImageNodes {
 public:
  explicit ImageNodes(const cluster::ClusterSnapshot& snapshot) : snapshot_(snapshot) {}
  // By node, 0 to 100; empty if all are 0.
  std::vector<uint8_t> Scores(const std::vector<cluster::ImageHash>& images);

 private:
  using Sizes = std::vector<std::pair<cluster::NodeIndex, int64_t>>;
  const Sizes& NodesWith(cluster::ImageHash image);

  const cluster::ClusterSnapshot& snapshot_;
  std::map<cluster::ImageHash, Sizes> known_;
};

class Preferences {
 public:
  // `admitted`: by node, its own state admits the pod.
  Preferences(const cluster::ClusterSnapshot& snapshot, const cluster::Shape& shape,
              PodRules::Preferred relations, const std::vector<uint8_t>& image_scores,
              const std::vector<uint8_t>& admitted);

  Reluctance Of(cluster::NodeIndex node) const {
    Reluctance out = fixed_[by_class_ ? snapshot_.ClassOf(node) : node];
    if (cells_.empty()) return out;
    const Reluctance& more = cells_[cell_of_[node]].reluctance;
    out.stated += more.stated;
    out.implied += more.implied;
    return out;
  }
  // Nodes of one class are as good.
  bool GoByClass() const { return by_class_ && cells_.empty(); }
  // Placements may change it.
  bool Move() const { return !cells_.empty(); }
  // Takes the present counts in. True if a node got better for which `knows(node)` is false.
  template <class Knows>
  bool Update(Knows knows) {
    bool unknown = false;
    CountCells();
    for (Cell& cell : cells_) {
      unknown |= cell.reluctance < cell.before && (cell.nodes > 1 || !knows(cell.node));
      cell.before = cell.reluctance;
    }
    return unknown;
  }

 private:
  // Nodes of the same domains of all labels that the terms and constraints name.
  struct Cell {
    cluster::NodeIndex node = cluster::kNoIndex;  // one of them
    uint32_t nodes = 0;
    bool admitted = false;  // some node of it is
    bool lacks_label = false;
    Reluctance reluctance, before;
    int64_t pull = 0, spread = 0;
  };

  void RateNodes(const cluster::Shape& shape, const std::vector<uint8_t>& image_scores,
                 const std::vector<uint8_t>& admitted);
  void MakeCells(const std::vector<uint8_t>& admitted);
  void Split(const PodRules::Topology& topology);
  void WeighConstraints(const std::vector<uint8_t>& admitted);
  int64_t PullOn(cluster::NodeIndex node) const;
  int64_t SpreadOn(cluster::NodeIndex node) const;
  void CountCells();

  const cluster::ClusterSnapshot& snapshot_;
  PodRules::Preferred relations_;
  std::vector<int64_t> log_weights_;  // by position in relations_.spread
  bool by_class_;
  std::vector<Reluctance> fixed_;  // by class or by node
  std::vector<uint32_t> cell_of_;  // by node
  std::vector<Cell> cells_;
};

}  // namespace muster::scheduler
