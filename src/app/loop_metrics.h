// src/app/loop_metrics.h
//
// The loop's own health in the Prometheus text format: how long its tasks took, and the
// process's memory and CPU time.
//
// Thread: the loop thread.

#pragma once

#include <string>

#include "loop/asio_loop.h"

namespace muster::app {

class LoopMetrics {
 public:
  explicit LoopMetrics(AsioLoop& loop) : loop_(loop) {}
  std::string Text();

 private:
  std::string HistogramText() const;

  AsioLoop& loop_;
};

}  // namespace muster::app
