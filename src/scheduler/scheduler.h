// src/scheduler/scheduler.h
//
// Scheduler: watches pods, nodes, PodGroups and PriorityClasses, plans (planner.h), binds
// (binder.h), and says about everything that waits why it does (status_publisher.h). Reaches the
// cluster only through ApiClient.
//
// Life cycle: construct, Start() once, destroy to stop. Whoever makes it starts the InformerSet
//             (before or after). It keeps no state of its own across restarts: bound pods and
//             their annotations are the state.
// Thread:     the loop thread; plans run on the Pool with a copy of the snapshot.
// Invariants: a gang is bound whole (at least minMember, counting members that are bound already)
//             or not at all; a device is promised to one pod at a time; a decision is kept
//             (assumed) until the informer shows it or the server refused it; one plan at a time;
//             nothing is planned unless something changed.
// Pace:       a plan starts at once when something relevant changed: a pod to place came, room was
//             freed, a node came. After a long plan the next one waits as long as that took (at
//             most 1 s), so planning takes half of a core. There is no back-off for units that do
//             not fit (a plan costs nothing while nothing changes, and skipping some units would
//             let later ones overtake); a unit whose binding was refused waits 100 ms to 10 s.

#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "client/api_client.h"
#include "client/informer.h"
#include "json/value.h"
#include "loop/loop.h"
#include "scheduler/planner.h"

namespace muster::scheduler {

// Numbers for /metrics, all since Start(). The names are those of kube-scheduler.
struct SchedulerMetrics {
  // scheduler_scheduling_attempt_duration_seconds, by result.
  std::function<void(std::string_view result, double seconds)> on_attempt;
  uint64_t scheduled = 0;      // scheduler_schedule_attempts_total{result="scheduled"}
  uint64_t unschedulable = 0;  // {result="unschedulable"}
  uint64_t errors = 0;         // {result="error"}: refused bindings
  uint64_t plans = 0;          // muster_scheduler_plans_total
  uint64_t plans_dropped = 0;  // decisions about a unit that the world had overtaken
  uint64_t pending_active =
      0;  // scheduler_pending_pods{queue="active"}: to be looked at in the next plan
  uint64_t pending_unschedulable = 0;  // {queue="unschedulable"}
  uint64_t pending_backoff = 0;        // {queue="backoff"}
  uint64_t pending_gated = 0;          // {queue="gated"}
  double last_plan_seconds = 0;
  uint64_t preemption_attempts = 0;  // scheduler_preemption_attempts_total
  // scheduler_preemption_victims: units by how many pods had to go for them, at most 1, 2, 4, ...
  // 64, or more.
  std::array<uint64_t, 8> preemption_victims{};
  uint64_t preemption_victims_sum = 0;
};

struct SchedulerConfig {
  // Pods with these schedulerNames are ours.
  std::vector<std::string> scheduler_names = {"default-scheduler", "volcano", "muster",
                                              std::string(cluster::kSpreadScheduler)};
  PlannerConfig planner;
};

class Scheduler {
 public:
  // REQUIRES: everything passed by reference outlives it.
  Scheduler(client::ApiClient& api, client::InformerSet& informers, Pool& pool,
            SchedulerConfig config = {});
  ~Scheduler();

  void Start();

  SchedulerMetrics& metrics();
  // Why the pod or gang waits, as JSON:
  // {"kind":"Pod"|"PodGroup","namespace","name","message",...explain.h}; null if it is not waiting
  // for us.
  json::Value ExplainPod(std::string_view ns, std::string_view name) const;
  json::Value ExplainGroup(std::string_view ns, std::string_view name) const;

  // Nothing to plan, in flight or to publish (timers do not count). For tests and simulation.
  bool Idle() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::scheduler
