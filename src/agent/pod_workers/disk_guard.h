// src/agent/pod_workers/disk_guard.h
//
// DiskGuard: keeps pods from filling the node's disk. It evicts a pod that is above a limit of its
// own (emptyDir sizeLimit, ephemeral-storage), and, when the disk is nearly full, tells so, has
// unused images removed, and then evicts the pod that has most on it, the next one when that one's
// space is free and does not do.
//
// Life cycle: Start() once the workers are there; destroy to stop.
// Thread:     the loop thread; it measures on the pool.
// Source:     the kubelet's eviction manager. Its threshold is 10 % of the disk; ours is at most
//             kMaxDiskReserveBytes (volumes/disk_usage.h).

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/pod_workers/pod_manager.h"
#include "client/lifetime.h"

namespace muster::agent {

inline constexpr Duration kDiskPeriod = seconds(1);  // the disk's free space
inline constexpr int kMeasurePeriods = 10;           // pods with limits, as upstream
// What an evicted pod has until its space must be free; then the next one goes. As upstream.
inline constexpr Duration kEvictionPatience = seconds(30);
inline constexpr Duration kPressureHold = seconds(30);  // after the last moment of pressure

class DiskGuard {
 public:
  // `on_pressure` hears of every change; PodWorkerContext::disk_pressure is set before.
  DiskGuard(PodWorkerContext& context, PodManager& manager, std::function<void(bool)> on_pressure);
  ~DiskGuard();

  void Start();

 private:
  struct Look;
  void LookLater();
  void LookNow();
  void OnLooked(Look& look);
  void SetPressure(const Look& look);
  bool WaitsForEviction() const;

  PodWorkerContext& context_;
  PodManager& manager_;
  std::function<void(bool)> on_pressure_;
  TimerId timer_ = 0;
  int looks_ = 0;
  Time pressure_until_{};
  std::string evicted_;  // uid of the last pod that had to make room
  Time evicted_until_{};
  client::Lifetime lifetime_;
};

}  // namespace muster::agent
