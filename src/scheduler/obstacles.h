// src/scheduler/obstacles.h
//
// Obstacles: whose pods keep a pod away by rules about other pods (host ports, anti-affinity of
// either side, spread), node by node.
//
// Life cycle: counted when made; of no use once pods are placed or taken away.
// Thread:     any, not shared.
// Cost:       O(placements * terms) where the pod looks at other pods or they at it, else nothing.

#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "cluster/snapshot.h"
#include "scheduler/node_finder.h"
#include "scheduler/queue.h"

namespace muster::scheduler {

// Holders that are remembered of one domain; more than these are too many to end.
inline constexpr size_t kMaxHoldersInTheWay = 64;

class Obstacles {
 public:
  Obstacles(NodeFinder& finder, const QueuedPod& pod);

  // Of pods that keep it from some node; those with the fewest such pods first.
  const std::vector<cluster::HolderIndex>& holders() const { return holders_; }
  // Of pods that keep it from this node, ascending.
  std::vector<cluster::HolderIndex> KeepingFrom(cluster::NodeIndex node) const;

 private:
  const PodRules& rules_;
  const LookIndex look_;
  // By term: the holders of the pods that count in each domain, ascending.
  std::vector<std::unordered_map<uint32_t, std::vector<cluster::HolderIndex>>> in_domain_;
  std::vector<cluster::HolderIndex> holders_;
};

}  // namespace muster::scheduler
