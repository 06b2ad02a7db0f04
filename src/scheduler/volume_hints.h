// src/scheduler/volume_hints.h
//
// What a pod's claims wait for: which claim or volume keeps the pod away, and what would change it.
//
// Thread: any (pure).

#pragma once

#include <string>

#include "cluster/snapshot.h"
#include "scheduler/volume_rules.h"

namespace muster::scheduler {

// Sentences, the worst first; "" if what pods of the shape claim excludes no node.
std::string VolumeHint(const VolumeRules& rules, const cluster::ClusterSnapshot& snapshot,
                       cluster::ShapeIndex shape);

}  // namespace muster::scheduler
