#include "app/scheduler_metrics.h"

#include <fmt/core.h>

namespace muster::app {

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
      metrics.pending_unschedulable, metrics.pending_backoff, metrics.pending_gated, metrics.plans,
      metrics.last_plan_seconds);
}

}  // namespace muster::app
