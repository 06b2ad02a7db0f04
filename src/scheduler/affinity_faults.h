// src/scheduler/affinity_faults.h
//
// What is wrong with a node affinity that no node satisfies: requirements that exclude each other,
// or one that no node of the cluster meets.
//
// Thread: any (pure).

#pragma once

#include <string>

#include "cluster/node_affinity.h"
#include "cluster/snapshot.h"

namespace muster::scheduler {

// "no node can ever match: it requires a In [x] and a In [y]"; "" if some node could.
std::string ContradictionIn(const cluster::NodeAffinity& affinity);

// "no node has zone In [nowhere]": the first requirement that none meets, of an affinity with at
// most one term. "" if each is met by some node.
std::string UnmetRequirement(const cluster::NodeAffinity& affinity,
                             const cluster::ClusterSnapshot& snapshot);

}  // namespace muster::scheduler
