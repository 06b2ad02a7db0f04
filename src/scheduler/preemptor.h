// src/scheduler/preemptor.h
//
// Preemptor: carries out what a plan decided about room (preemption.h): tells the pods where they
// are nominated (status.nominatedNodeName), and evicts the victims: condition DisruptionTarget,
// DELETE with the victim's uid and its own grace period, event Preempted.
//
// A victim counts as leaving from the moment of the decision, so no plan looks for others in its
// stead. A nomination lasts until a plan withdraws or changes it, or the pod is bound or gone.
//
// A gang goes whole also when its deletes are interrupted: once one that was preempted is seen to
// leave and fewer stay than the gang needs, those that were made before go too, though nobody waits
// for them any more, or a scheduler before this one decided it.
//
// Life cycle: lives with its scheduler; destroying it abandons what is in flight. What was decided
//             and not yet sent is decided anew after a restart, but for the rest of a gang of which
//             some are leaving; nominations are read from the pods.
// Thread:     the loop thread.
// Invariants: a victim is deleted only while the pod for which it has to go waits, or as the rest
//             of its gang; at most kMaxPreemptionWritesInFlight writes at a time; one that failed
//             is repeated after 100 ms to 10 s.

#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "client/api_client.h"
#include "client/event_recorder.h"
#include "client/informer.h"
#include "client/lifetime.h"
#include "cluster/cluster_cache.h"
#include "json/value.h"
#include "scheduler/pending.h"
#include "scheduler/planner.h"
#include "scheduler/preemption_facts.h"

namespace muster::scheduler {

inline constexpr size_t kMaxPreemptionWritesInFlight = 32;

class Preemptor {
 public:
  // REQUIRES: everything passed by reference outlives it. `budgets`: of PodDisruptionBudgets, which
  // a server may not have.
  Preemptor(client::ApiClient& api, client::Informer& pods, client::Informer& budgets,
            const cluster::ClusterCache& cache);

  // A pod of that gang leaves or is gone. True: EvictRests() has something to look at.
  bool Leaves(const cluster::PodKey& pod, const std::string& uid, const std::string& gang);
  // What stays of gangs that were preempted in part and are not whole any more goes.
  void EvictRests();

  // Before a plan: where the queue's pods are nominated; and what the plan asks about the rest.
  void Nominate(Queue& queue);
  PreemptionFacts Facts(const PriorityClasses& priorities);

  // After it: takes over what was decided about a unit of which pods stay pending. False, and
  // nothing happens, if a victim is no longer what it was: the plan has to be made again.
  bool Apply(const Unit& unit, const UnitPlan& plan);
  // The pods that still have to go for the unit, "pod ns/name".
  std::vector<std::string> VictimsOf(const UnitKey& unit) const;

  // Some pod that waits was nominated there, as of the last plan.
  bool IsNominated(const std::string& node) const { return nominated_nodes_.contains(node); }
  // The pod is nominated: somebody went for it, or will.
  bool MadeRoomFor(const cluster::PodKey& pod) const { return !NominatedNodeOf(pod).empty(); }
  // The pod does not wait any more, or is another one of its name.
  void Forget(const cluster::PodKey& pod);
  bool Idle() const { return in_flight_ == 0 && backing_off_ == 0 && ready_.empty(); }

 private:
  struct Eviction {
    std::string uid;
    cluster::PodKey preemptor;
    std::string preemptor_uid, scheduler_name, node;
    UnitKey unit;
    bool has_condition = false;
    bool done = false;  // deleted: it stays here until it is seen to leave
    bool is_rest = false;  // it goes whoever waits
    int attempts = 0;
  };
  struct Wanted {
    std::string node;                  // "": nowhere
    bool busy = false;                 // a write waits or is under way
    std::optional<uint64_t> revision;  // of the write, once it was answered
    int attempts = 0;
  };
  // A write that waits: a nomination or an eviction.
  struct Job {
    bool is_eviction = false;
    cluster::PodKey pod;
  };

  std::string NominatedNodeOf(const cluster::PodKey& pod) const;
  void SetNomination(const cluster::PodKey& pod, const std::string& node);
  bool StillWaits(const Eviction& eviction) const;
  void DropOldEvictions();
  void DropSeenNominations();
  void SchedulePump();
  void RetryLater(Job job, int attempts);
  void SendNomination(const cluster::PodKey& pod);
  void OnNominated(const cluster::PodKey& pod, const std::string& node,
                   const Result<json::Value>& answer);
  void SendEviction(const cluster::PodKey& pod);
  void OnEvictionStep(const cluster::PodKey& pod, const std::string& uid, bool is_delete,
                      const json::Value& victim, const Status& status);

  client::ApiClient& api_;
  client::Informer& pods_;
  client::Informer& budgets_;
  const cluster::ClusterCache& cache_;
  client::EventRecorder events_;
  std::map<cluster::PodKey, Wanted> nominations_;  // that the informer does not show yet
  std::map<cluster::PodKey, Eviction> evictions_;  // by victim
  std::map<cluster::PodKey, Time> breaking_;       // gangs that lost pods by preemption: when
  std::set<std::string> nominated_nodes_;
  std::deque<Job> ready_;
  size_t in_flight_ = 0;
  size_t backing_off_ = 0;
  bool pump_posted_ = false;
  client::Lifetime lifetime_;
};

}  // namespace muster::scheduler
