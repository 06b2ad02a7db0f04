// src/app/scheduler_metrics.h
//
// The scheduler's numbers in the Prometheus text format, under kube-scheduler's names.
//
// Thread: the loop thread.

#pragma once

#include <string>

#include "scheduler/scheduler.h"

namespace muster::app {

std::string SchedulerMetricsText(const scheduler::SchedulerMetrics& metrics);

}  // namespace muster::app
