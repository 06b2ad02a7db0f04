// src/scheduler/planner.h
//
// Plan: decides which pod goes to which node and gets which devices. Pure: the same arguments give
// the same plan.
//
// Rules: a node takes a pod if all hold, looked at in this order: it is not cordoned (or the pod
//        tolerates that), the pod tolerates its NoSchedule and NoExecute taints, it matches the
//        pod's nodeSelector and required node affinity (its name included), its host ports are
//        free, it has enough of every resource free and enough whole devices, and it suits the
//        pod's topology spread constraints (DoNotSchedule), its required affinity and anti-affinity
//        to other pods, and the anti-affinity of pods that are there. A pod that came with a
//        spec.nodeName is bound and never gets here.
// Choice: the node that the pod prefers by what it states (preferences.h). Then a pod that wants no
//        devices stays off nodes with devices while another node takes it; one that wants several
//        goes where NVLinks join as many free ones. Then what its images and its profile prefer.
//        Then the node where it takes the least from the pods to come (packing.h, once there are
//        pods to learn from), then the node that is fullest, so that whole nodes stay free for
//        large jobs: where the fewest devices are free, then the least cpu, then the lower index.
//        With the profile that spreads (schedulerName muster-spread) the emptiest: most devices,
//        then most cpu.
// Room:   a pod for which room is being made counts as placed where it was nominated for units of
//        lower or equal priority (reservations.h), and goes there if it fits. For units that were
//        refused, from high to low priority, preemption.h finds out who would have to go.
// Order: queue.h. An interrupted gang first gets what it needs to be whole, the rest in its turn. A
//        unit that does not fit blocks nobody: those behind it may still go. If it looks
//        at other pods, it is tried again after them.
// Gangs: gang_planner.h. All of a gang's pods or, if not all fit, as many as do but at least what
//        its minima ask for; else none.
// Cost:  O(nodes) for the first pod of a shape, O(log nodes) for each further one; with rules about
//        other pods as node_finder.h says.
// Thread: any.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "cluster/snapshot.h"
#include "scheduler/explain.h"
#include "scheduler/packing.h"
#include "scheduler/preemption.h"
#include "scheduler/queue.h"

namespace muster::scheduler {

struct PlannerConfig {
  // Bound on working out what would unblock refused units, in pods looked at (about 50 ms); units
  // beyond it are told the rules and the amounts only.
  size_t max_unblock_work = 100'000;
  // Bound on looking for victims, in running pods looked at (about a second); units beyond it are
  // looked at again in the next plan.
  size_t max_preemption_work = 5'000'000;
  // Off in benchmarks of bare decisions.
  bool explain = true;
  // Of one unit only: its position in the queue.
  std::optional<size_t> explain_only = std::nullopt;
  // With what `muster explain` shows below the sentence.
  bool detail = false;
  // What the plan before came to; null at first.
  std::shared_ptr<const Packing> packing = nullptr;
};

struct Assignment {
  size_t pod = 0;  // position in Unit::pods
  std::string node;
  cluster::DeviceSet devices;  // positions in that node's NodeInfo::devices
  // Of its claims that wait for their first pod.
  std::vector<cluster::VolumeChoice> volumes;
};

struct UnitPlan {
  size_t unit = 0;                      // position in the queue that was passed in
  std::vector<Assignment> assignments;  // empty if it does not fit
  // Why a pod of the unit stays pending, if one does: all of them, or those beyond the gang's
  // minimum.
  std::optional<Infeasible> infeasible;
  // Whether room can be made for pods of the unit that found none, and how (preemption.h).
  PreemptionPlanner::Outcome room = PreemptionPlanner::Outcome::kUndecided;
  Preemption preemption;
};

struct PlanResult {
  std::vector<UnitPlan>
      units;  // in the order in which they were considered; one for each that does not rest
  std::shared_ptr<const Packing> packing;  // for the next plan
  size_t preemption_attempts = 0;  // units for which victims were looked for
  // The bound on work was used up before all were looked at; somebody who found no victims has a
  // higher priority than pods that this plan placed; or room was kept for somebody who loses it.
  bool plan_again = false;
  size_t search_looks = 0;  // what gangs of pods that differ took of the SearchBudget
};

// `now` matters to preemption alone: when pods started that have not.
PlanResult Plan(cluster::ClusterSnapshot snapshot, const Queue& queue, const PlannerConfig& config,
                Time now, const PreemptionFacts& preemption = {});

}  // namespace muster::scheduler
