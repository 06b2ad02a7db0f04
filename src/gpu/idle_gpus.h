// src/gpu/idle_gpus.h
//
// IdleGpus: which GPUs somebody holds and does nothing with, from what the driver says time after
// time. A GPU is idle while each look finds it at most kIdlePercent busy; who shares one with a pod
// that works counts as working, because the driver tells no more.
//
// Thread:     not shared (pure).
// Invariants: who was told of as idle is told of as working again, unless the GPU was given back;
//             at most one notice in each doubling of the time.

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"

namespace muster::gpu {

inline constexpr int64_t kIdlePercent = 5;
inline constexpr Duration kIdleTold = minutes(30);  // idle for so long: its pod is told

class IdleGpus {
 public:
  // Zero: nobody is told.
  explicit IdleGpus(Duration threshold) : threshold_(threshold) {}

  struct Held {
    std::string gpu;
    int64_t utilization_percent = -1;  // -1: the driver does not tell
    std::vector<std::string> holders;
  };
  struct Notice {
    std::string gpu, holder;
    Duration idle{};     // so far
    bool works = false;  // again
  };
  // One look at all GPUs.
  std::vector<Notice> Observe(const std::vector<Held>& gpus, Time now);

 private:
  struct State {
    Time since{};
    Duration tell_at{};  // when it has been idle for so long
    bool told = false;
    uint64_t look = 0;  // the last one that found it held
  };

  const Duration threshold_;
  uint64_t looks_ = 0;
  std::map<std::pair<std::string, std::string>, State> held_;  // by GPU and holder
};

}  // namespace muster::gpu
