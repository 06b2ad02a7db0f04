// src/app/loop_metrics.h
//
// The loop's own health in the Prometheus text format: how long its tasks took, and the
// process's memory and CPU time.
//
// Thread: the loop thread.

#pragma once

#include <string>
#include <string_view>

#include "loop/asio_loop.h"

namespace muster::app {

// A histogram in seconds with a name and a sentence of help.
std::string HistogramText(std::string_view name, std::string_view help, const TaskTimes& times);

class LoopMetrics {
 public:
  explicit LoopMetrics(AsioLoop& loop) : loop_(loop) {}
  std::string Text();

 private:
  AsioLoop& loop_;
};

}  // namespace muster::app
