#include "app/scheduler_metrics.h"

#include <string>

#include <fmt/core.h>

namespace muster::app {

namespace {

std::string PreemptionText(const scheduler::SchedulerMetrics& metrics) {
  std::string out = fmt::format(
      "# HELP scheduler_preemption_attempts_total Pods and gangs for which victims were looked "
      "for.\n"
      "# TYPE scheduler_preemption_attempts_total counter\n"
      "scheduler_preemption_attempts_total {}\n"
      "# HELP scheduler_preemption_victims Pods that had to go for one pod or gang.\n"
      "# TYPE scheduler_preemption_victims histogram\n",
      metrics.preemption_attempts);
  uint64_t count = 0;
  for (size_t bucket = 0; bucket < metrics.preemption_victims.size(); ++bucket) {
    count += metrics.preemption_victims[bucket];
    const bool last = bucket + 1 == metrics.preemption_victims.size();
    out += fmt::format("scheduler_preemption_victims_bucket{{le=\"{}\"}} {}\n",
                       last ? "+Inf" : std::to_string(1 << bucket), count);
  }
  return out +
         fmt::format("scheduler_preemption_victims_sum {}\nscheduler_preemption_victims_count {}\n",
                     metrics.preemption_victims_sum, count);
}

}  // namespace

std::string SchedulerMetricsText(const scheduler::SchedulerMetrics& metrics) {
  return fmt::format(
             "# HELP scheduler_schedule_attempts_total Attempts to schedule pods, by result.\n"
             "# TYPE scheduler_schedule_attempts_total counter\n"
             "scheduler_schedule_attempts_total{{result=\"scheduled\"}} {}\n"
             "scheduler_schedule_attempts_total{{result=\"unschedulable\"}} {}\n"
             "scheduler_schedule_attempts_total{{result=\"error\"}} {}\n"
             "# HELP scheduler_pending_pods Pending pods, by queue.\n"
             "# TYPE scheduler_pending_pods gauge\n"
             "scheduler_pending_pods{{queue=\"active\"}} {}\n"
             "scheduler_pending_pods{{queue=\"unschedulable\"}} {}\n"
             "scheduler_pending_pods{{queue=\"backoff\"}} {}\n"
             "scheduler_pending_pods{{queue=\"gated\"}} {}\n"
             "# HELP muster_scheduler_plans_total Planning passes over everything that waits.\n"
             "# TYPE muster_scheduler_plans_total counter\n"
             "muster_scheduler_plans_total {}\n"
             "# HELP muster_scheduler_last_plan_seconds How long the last planning pass took.\n"
             "# TYPE muster_scheduler_last_plan_seconds gauge\n"
             "muster_scheduler_last_plan_seconds {:.6f}\n",
             metrics.scheduled, metrics.unschedulable, metrics.errors, metrics.pending_active,
             metrics.pending_unschedulable, metrics.pending_backoff, metrics.pending_gated,
             metrics.plans, metrics.last_plan_seconds) +
         PreemptionText(metrics);
}

}  // namespace muster::app
