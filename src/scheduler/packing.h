// src/scheduler/packing.h
//
// What the planner knows of the pods to come, and what it makes of it: a price for placing a pod on
// a node (cluster/packing/packing_prices.h), in the order of nodes before how full they are.
//
// The mix of pods to come is taken to be that of the pods that run or wait now, so that it needs no
// memory: a scheduler that starts anew knows it at once. The models that a pod names are those of
// the node classes that its rules let it onto.
//
// Life cycle: Learn() at the start of each plan, from the packing of the plan before.
// Thread:     any: a Packing is constant.
// Cost:       O(placements + queue) to find that it is not due; it is when an eighth of the pods or
//             a node changed, and then takes 1 to 20 ms.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cluster/packing/packing_prices.h"
#include "cluster/snapshot.h"
#include "scheduler/queue.h"

namespace muster::scheduler {

// Fewer GPU pods than these are no mix to learn from.
inline constexpr size_t kLeastGpuPods = 16;

struct Packing {
  std::vector<std::string> models;  // by index, as GpuState::model; ModelName()
  cluster::PackingPrices prices;
  std::vector<int64_t> pods_of_shape;  // that it was learned from
  size_t nodes = 0;
};

// `before` again while it will do; null while there is nothing to learn from.
std::shared_ptr<const Packing> Learn(const cluster::ClusterSnapshot& snapshot, const Queue& queue,
                                     std::shared_ptr<const Packing> before);

}  // namespace muster::scheduler
