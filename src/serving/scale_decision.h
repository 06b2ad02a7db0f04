// src/serving/scale_decision.h
//
// How many pods the traffic asks for, as Knative's autoscaler decides: an average over the window
// divided by what one pod should have; a shorter window reacts to a rush; no pod when nobody has
// asked for the whole window. Source: knative.dev/docs/serving/autoscaling.
//
// Thread: any (pure).

#pragma once

#include <cstdint>
#include <deque>

#include "base/time.h"
#include "serving/inference_service.h"

namespace muster::serving {

inline constexpr Duration kRushWindow = seconds(6);        // Knative's panic window
inline constexpr int64_t kDefaultConcurrencyTarget = 100;  // requests at a time, as Knative's
inline constexpr int64_t kDefaultRpsTarget = 200;          // requests a second, as Knative's

// What the gateway has counted of one Deployment so far.
struct TrafficSample {
  Duration at{};          // monotonic
  uint64_t requests = 0;  // ever
  int64_t in_flight = 0;  // now, the held ones included
};

// The last kMaxWindow of samples, one for each look.
class TrafficHistory {
 public:
  void Add(const TrafficSample& sample, Duration window);
  double RequestsPerSecond(Duration window) const;
  double Concurrency(Duration window) const;
  // Nobody asked, and nobody waits, since at least this long.
  bool IdleFor(Duration window) const;

 private:
  std::deque<TrafficSample> samples_;
  Duration last_busy_{};
};

// `present`: pods wanted now.
int64_t WantedByTraffic(const ScalePolicy& policy, const TrafficHistory& history, int64_t present);

}  // namespace muster::serving
