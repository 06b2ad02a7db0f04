// tests/simulation/oracles.h
//
// Oracles: reads every committed revision as a watcher of the store, across its crashes, and checks
// what must hold after each.
//
//   watch equals log     revisions come one by one without a gap, none before its commit, each
//                        event's previous state is the one known; what a write was acknowledged
//                        with is committed, and stays so after a crash
//   past equals log      a read of an old revision gives the state of that revision
//   bound once           a pod's nodeName never changes
//   device owned once    no two unfinished pods of a node hold one device
//   gangs                all or nothing (gang_oracle.h)
//   preemption           nobody goes in vain (preemption_oracle.h)
//   workloads            of apps/v1 and batch/v1 (workload_oracle.h)
//   one pod per replica  of one job, and pods of a restarted gang are made when those of the epoch
//                        before are gone
//   jobs                 restarts stay within backoffLimit and reach it before the job fails for
//                        it; a job succeeds when the pods that decide have
//   deletion             nothing is left of a namespace that went; an owner that went in the
//                        foreground or orphaned its dependents has none
//   rest                 at a fixpoint: no orphans, and what objects say of others is so
//
// Thread: the simulation's.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "client/informer.h"
#include "json/value.h"
#include "loop/sim_loop.h"
#include "net/http.h"
#include "simulation/counts.h"
#include "simulation/gang_oracle.h"
#include "simulation/preemption_oracle.h"
#include "simulation/workload_oracle.h"
#include "store/store.h"

namespace muster::simulation {

class Oracles {
 public:
  // `tell`: a line for each change that a reader of the trace wants to see; may be empty.
  Oracles(SimLoop& loop, Counts& counts, std::function<void(const std::string&)> on_violation,
          std::function<void(const std::string&)> tell);

  // The store was opened (again); nullptr: it is about to be closed.
  void Attach(store::Store* store);
  // A write with this answer is done.
  void OnAcknowledged(const net::Response& response);
  // A user is about to delete the object ("ns/name") in the background: even if it is being deleted
  // in another way, it need not wait for its dependents any more.
  void OnBackgroundDelete(const std::string& object) { need_not_wait_.insert(object); }
  // `listener` is told of every change of an object whose key begins so, in the order of the log;
  // one that is gone is as it was before.
  using Listener =
      std::function<void(const std::string& key, const json::Value& object, bool deleted)>;
  void Listen(std::string prefix, Listener listener) {
    listeners_.emplace_back(std::move(prefix), std::move(listener));
  }
  // Whoever listens goes before the world does.
  void ForgetListeners() { listeners_.clear(); }
  // Time has passed.
  void Tick() {
    gangs_.Tick();
    preemption_.Tick();
  }
  // Compares a read of some revision of the past with the log.
  void CheckPast(Rng& rng);
  // REQUIRES: nothing is in flight.
  void CheckFixpoint();
  // The informer holds exactly what the store does.
  void CheckInformer(const client::Informer& informer);

  // Over everything that was ever committed.
  uint64_t trace_hash() const { return trace_hash_; }
  store::Revision revisions() const { return last_revision_; }
  WorkloadOracle& workloads() { return workloads_; }
  const std::map<std::string, PodState>& pods() const { return pods_; }  // by UID

 private:
  // What the log says of a job, by UID.
  struct JobHistory {
    std::map<std::string, int64_t> restarts_in_place;  // by the pod's UID, gone ones too
    std::set<std::string> failures;                    // epochs of a gang, pods of an elastic job
    std::set<std::string> succeeded;                   // replicas
    int64_t restarts_recorded = 0;
    int64_t increases = 0;
    bool finished = false;
  };
  struct Change {
    std::string key;
    bool deleted = false;
  };

  void OnEvent(const store::WatchEvent& event);
  void OnPod(const store::WatchEvent& event, const json::Value& object);
  void ChangePod(const PodState* before, const PodState* after);
  void OnNewPod(const std::string& uid, const PodState& pod);
  void OnBound(const std::string& uid, const PodState& pod);
  void RememberForJob(const std::string& uid, const PodState& pod);
  void OnNode(const store::WatchEvent& event, const json::Value& object);
  void OnJob(const store::WatchEvent& event, const json::Value& job);
  void CheckEnd(const json::Value& job, const JobHistory& history);
  void CheckDeletedOwner(const json::Value& owner);
  void CheckDeletedNamespace(const std::string& key);
  void CheckJobAtRest(const json::Value& job);
  void CheckGroupAtRest(const json::Value& group);
  void CheckOwnersAtRest(const std::vector<json::Value>& objects);
  void Tell(const store::WatchEvent& event, const json::Value& object) const;
  void CountBranches(const store::WatchEvent& event, const json::Value& object);

  SimLoop& loop_;
  Counts& counts_;
  std::function<void(const std::string&)> on_violation_;
  std::function<void(const std::string&)> tell_;
  GangOracle gangs_;
  PreemptionOracle preemption_;
  WorkloadOracle workloads_;
  std::vector<std::pair<std::string, Listener>> listeners_;
  store::Store* store_ = nullptr;
  store::Revision last_revision_ = 0;
  uint64_t trace_hash_ = 0;
  std::vector<Change> log_;                       // by revision - 1
  std::map<std::string, store::Revision> known_;  // key -> mod_revision
  std::map<std::string, PodState> pods_;          // by UID
  std::map<std::string, JobHistory> jobs_;        // by UID
  std::set<std::string> need_not_wait_;           // for their dependents, "ns/name"
};

}  // namespace muster::simulation
