// src/simulator/waiting_units.h
//
// WaitingUnits: the queue of a simulation, kept in order while it grows to tens of thousands.
//
// Units that ask for the same are a class. Within one plan room only shrinks, so of a class those
// are placed that come first: a plan of as many of each class as the free amounts could hold in sum
// places the same ones as a plan of all (the pods to come, for which packing keeps room, are then
// those that run or are tried). Units that look at other pods are always passed, since what is
// placed before them may open nodes for them.
//
// Life cycle: units are added as BuildQueue makes them, and removed when they are placed.
// Thread:     not shared.
// Invariants: a unit is there once; classes are never empty.
// Cost:       O(log units) to add or remove one; a queue for a plan costs O(nodes + classes + what
//             is in it).

#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "cluster/snapshot.h"
#include "scheduler/queue.h"

namespace muster::simulator {

class WaitingUnits {
 public:
  // REQUIRES: the shapes of the unit's pods live while it is here. Returns a copy.
  scheduler::Unit Add(scheduler::Unit unit, const cluster::ClusterSnapshot& snapshot);
  void Remove(const scheduler::Unit& unit);

  size_t size() const { return size_; }
  // The first one in the order of scheduler/queue.h. REQUIRES: size() > 0.
  const scheduler::Unit& First() const;
  scheduler::Queue All() const;
  // Of which a plan on this snapshot places the same ones as of All().
  scheduler::Queue WorthATry(const cluster::ClusterSnapshot& snapshot) const;
  // `queue` and, if they are not in it, the units that look at other pods.
  scheduler::Queue LookingAtPods(scheduler::Queue queue) const;

 private:
  struct Before {
    bool operator()(const scheduler::Unit& a, const scheduler::Unit& b) const {
      return scheduler::GoesBefore(a, b);
    }
  };
  struct Class {
    std::set<scheduler::Unit, Before> units;
    bool looks_at_pods = false;
  };
  // Runs of like pods: shape, identity, number.
  using Key = std::vector<std::tuple<cluster::ShapeIndex, cluster::IdentityIndex, size_t>>;
  static Key KeyOf(const scheduler::Unit& unit);

  std::map<Key, Class> classes_;
  size_t size_ = 0;
};

}  // namespace muster::simulator
