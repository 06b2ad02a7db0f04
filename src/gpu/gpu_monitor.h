// src/gpu/gpu_monitor.h
//
// GpuMonitor: looks at the GPUs of this machine again and again, and tells when something changed.
// A machine without a driver is asked once.
//
// Life cycle: Start() once; destroy to stop.
// Thread:     the loop thread.
// Invariants: one look at a time; none is started before the last one was answered or given up.

#pragma once

#include <functional>
#include <vector>

#include "base/task.h"
#include "base/time.h"
#include "gpu/gpu_health.h"
#include "gpu/prober.h"
#include "loop/loop.h"

namespace muster::gpu {

inline constexpr Duration kGpuLookPeriod = seconds(5);
inline constexpr Duration kGpuSteady =
    seconds(30);  // without a fault, before a GPU is offered again
inline constexpr Duration kFreshSample = seconds(1);

class GpuMonitor {
 public:
  // `on_change` hears of the first look that was answered, whatever it says, and of every change.
  GpuMonitor(Loop& loop, Prober& prober, Duration steady, std::function<void()> on_change);
  ~GpuMonitor();

  // Hears of every regular look that was answered, after on_change. Before Start().
  void OnEveryLook(std::function<void()> on_look) { on_look_ = std::move(on_look); }
  void Start();
  // Some look was answered: what health() says is so.
  bool known() const { return known_; }
  // This machine has no driver.
  bool absent() const { return absent_; }
  const GpuHealth& health() const { return health_; }
  // `done` runs when health() is at most kFreshSample old, or the driver did not answer.
  void Refresh(Task done);

 private:
  void Look(bool counts);
  void OnLook(const Result<Inventory>& look, bool counts);
  void LookLater();

  Loop& loop_;
  Prober& prober_;
  GpuHealth health_;
  std::function<void()> on_change_, on_look_;
  bool known_ = false, absent_ = false, looking_ = false;
  bool anew_ = false;  // the next look begins anew: something is missing
  Time looked_at_{};
  TimerId timer_ = 0;
  std::vector<Task> waiting_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster::gpu
