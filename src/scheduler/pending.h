// src/scheduler/pending.h
//
// Which pods wait for us, and the queue that a plan gets from them.
//
// Thread: the loop thread (reads the live cache); the functions are pure.

#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cluster/cluster_cache.h"
#include "scheduler/queue.h"

namespace muster::scheduler {

// Pods to be planned. The records are the cache's: an entry lives no longer than its record.
using PendingPods = std::map<cluster::PodKey, const cluster::PodRecord*>;

// PriorityClass name -> value.
using PriorityClasses = std::map<std::string, int64_t>;

// Not bound, not decided, alive, not gated, and its schedulerName is one of ours.
bool IsPending(const cluster::PodRecord& pod, const std::vector<std::string>& scheduler_names);
// The same, but held back by spec.schedulingGates.
bool IsGated(const cluster::PodRecord& pod, const std::vector<std::string>& scheduler_names);

// The unit that a pod belongs to: its PodGroup if it names one, else the pod itself.
struct UnitKey {
  bool is_gang = false;
  cluster::PodKey key;
  auto operator<=>(const UnitKey&) const = default;
};
UnitKey UnitOf(const cluster::PodFacts& pod);
UnitKey KeyOf(const Unit& unit);

// The members of a gang as they count: failed and terminating pods do not.
struct GangCount {
  int64_t members = 0;                                          // exist
  int64_t occupied = 0;                                         // bound, assumed or succeeded
  int64_t running = 0, succeeded = 0, failed = 0, pending = 0;  // by phase
  std::vector<TaskCount> tasks;                                 // those with a minimum
  SubGroups sub_groups;
};
// The position of the task of that name; kNoTask if it has no minimum.
size_t TaskOf(const std::vector<TaskCount>& tasks, const std::string& name);
// The sub-group of a pod of the gang; kNoSubGroup if it is of none.
size_t SubGroupOf(const cluster::ClusterCache& cache, const cluster::PodRecord& pod,
                  SubGroups& sub_groups);
GangCount CountGang(const cluster::ClusterCache& cache, const cluster::PodKey& group);
// As many members as its minima ask for have a place, and as the sub-groups of these members of it
// ask for. False without a PodGroup.
bool IsWhole(const cluster::ClusterCache& cache, const cluster::PodKey& group,
             const std::vector<cluster::PodKey>& pods);

// In no particular order: the planner sorts. A gang's priority is that of its PriorityClass, or of
// its highest pod.
Queue BuildQueue(const cluster::ClusterCache& cache, const PendingPods& pending,
                 const PriorityClasses& priorities, const std::set<UnitKey>& left_out);

}  // namespace muster::scheduler
