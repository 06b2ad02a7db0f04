// tests/simulation/workload_oracle.h
//
// WorkloadOracle: what ReplicaSets, Deployments, StatefulSets, DaemonSets, Jobs and CronJobs never
// do, whatever fails. Sees every change of them and of pods in the order of the log, and knows
// nothing of the controllers. These know a cluster that is a little older than the log: what was
// so within kPlanAge counts as being so.
//
//   ReplicaSet   makes no pod above its replicas
//   Deployment   no ReplicaSet grows beyond replicas + maxSurge in all; no available pod is ended
//                below replicas - maxUnavailable; with Recreate no pod comes beside an old one
//   StatefulSet  in order: a pod comes when those before it are ready; one at a time is
//                replaced, or maxUnavailable of them
//   DaemonSet    one pod on a node, two while a surge replaces it
//   Job          no pod above its parallelism or of an index that runs or is completed, none after
//                its end; it says that as many succeeded as did, and Complete means all
//   CronJob      one Job for each of its times; with Forbid none beside one that runs
//   rest         as many pods as wanted, all ready, and status says so; no pod is still tracked
//
// Thread: the simulation's.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"
#include "loop/sim_loop.h"
#include "simulation/counts.h"

namespace muster::simulation {

class WorkloadOracle {
 public:
  WorkloadOracle(SimLoop& loop, Counts& counts,
                 std::function<void(const std::string&)> on_violation)
      : loop_(loop), counts_(counts), on_violation_(std::move(on_violation)) {}

  static bool Sees(std::string_view key);
  // `deleted`: the object is as it was before.
  void OnChange(const std::string& key, const json::Value& object, bool deleted);
  // Somebody who is no controller of workloads deletes this pod.
  void Excuse(const std::string& pod_uid) { excused_.insert(pod_uid); }
  void CheckFixpoint();

 private:
  // A number that controllers may know in an older version: its values with the time since when.
  class Recent {
   public:
    void Set(Time now, int64_t value);
    int64_t now() const { return values_.empty() ? 0 : values_.back().second; }
    int64_t Most(Time now) const;
    int64_t Least(Time now) const;

   private:
    std::vector<std::pair<Time, int64_t>> values_;
  };
  struct Pod {
    std::string key, owner, node, index, revision;  // owner: uid; node: where it is or must go
    bool adopted = false, deleting = false, finished = false, succeeded = false, ready = false;
    bool tracked = false;         // has the finalizer of Jobs
    bool ended_by_owner = false;  // nobody else deleted it
    bool gone = false;
    // became_ready: the last time; left: of those that are gone.
    Time created{}, became_ready{}, last_ready{}, left{};

    bool IsActive() const { return !deleting && !finished && !gone; }
  };
  struct Owner {
    std::string kind, key, controller;  // controller: uid
    json::Value object;
    Recent most, least;  // pods that may be, that must be available
    Time created{}, template_changed{}, scaled{};
    bool gone = false;
    // Of a Job: pods by how they ended, and when the completed indexes were.
    std::set<std::string> succeeded, failed;
    std::map<std::string, Time> completed;
    bool finished = false;
    Time finished_at{};
    std::set<std::string> times;  // of a CronJob: that have their Job

    bool IsGoing() const { return gone || object["metadata"].Has("deletionTimestamp"); }
  };

  void OnPod(const json::Value& object, bool deleted);
  void OnNewPod(const std::string& uid, const Pod& pod, const Owner& owner);
  void OnPodEnded(const std::string& uid, const Pod& pod, const Owner& owner);
  void OnOwner(const std::string& key, const json::Value& object, bool deleted);
  void OnJob(Owner& job);
  void OnNewJob(const std::string& uid, const Owner& job);
  void OnReplicaSetGrew(const Owner& replica_set);
  void CheckRecreate(const Pod& pod, const Owner& replica_set);
  void CheckOrder(const Pod& pod, const Owner& owner);
  void CheckDaemon(const Pod& pod, const Owner& owner);
  void CheckJobPod(const std::string& uid, const Pod& pod, const Owner& job);
  void CheckAvailable(const std::string& uid, const Pod& pod, const Owner& deployment);
  void CheckRest(const std::string& uid, const Owner& owner);
  bool IsRecent(Time when) const;
  const Owner* FindOwner(const std::string& uid) const;
  std::vector<const Pod*> PodsOf(const std::string& owner_uid) const;
  void Forget();

  SimLoop& loop_;
  Counts& counts_;
  std::function<void(const std::string&)> on_violation_;
  std::map<std::string, Pod> pods_;      // by uid; those that left stay for a while
  std::map<std::string, Owner> owners_;  // by uid
  std::set<std::string> excused_;
  std::set<std::string> going_namespaces_;
};

}  // namespace muster::simulation
