// src/gateway/traffic_counters.h
//
// What the gateway counts of one Deployment. Written by the gateway's thread, read by the
// control-plane loop (for scaling and /metrics).
//
// Thread: any; each number by itself.

#pragma once

#include <atomic>
#include <cstdint>

namespace muster::gateway {

struct TrafficCounters {
  std::atomic<uint64_t> requests{0};  // that came, ever
  std::atomic<int64_t> in_flight{0};  // at a pod
  std::atomic<int64_t> held{0};       // that wait for a pod
  std::atomic<uint64_t> failures{0};  // answered by the gateway itself: no pod, no answer
};

}  // namespace muster::gateway
