// src/scheduler/linked_nodes.h
//
// Which nodes a pod of several devices prefers, as far as NVLink is concerned: those with as many
// free devices that links join, over those where its devices would talk over PCIe.
//
// Thread: any (pure).

#pragma once

#include "cluster/snapshot.h"

namespace muster::scheduler {

// The pod's devices would not all be joined. REQUIRES: the node has enough of them free.
inline bool SplitsLinks(const cluster::ClusterSnapshot& snapshot, const cluster::Shape& shape,
                        cluster::NodeIndex node) {
  if (shape.device_resource == cluster::kNoIndex) return false;
  const int64_t wanted = shape.AmountOf(shape.device_resource);
  return wanted > 1 && snapshot.MostJoined(node) < wanted;
}

}  // namespace muster::scheduler
