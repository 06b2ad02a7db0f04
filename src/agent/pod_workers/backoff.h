// src/agent/pod_workers/backoff.h
//
// CrashBackoff: how long a container that ends again and again waits before the next start: 10 s,
// doubled at each restart up to 5 minutes, forgotten after a run of twice the maximum.
//
// Thread: any (a value).
// Source: the kubelet's MaxContainerBackOff and flowcontrol.Backoff.

#pragma once

#include "base/time.h"

namespace muster::agent {

inline constexpr Duration kInitialBackoff = seconds(10);
inline constexpr Duration kMaxBackoff = seconds(300);

class CrashBackoff {
 public:
  // The container ended at `finished` after running since `started`: when it may start again. The
  // first end costs nothing, as upstream: the container is started again at once.
  Time OnExit(Time started, Time finished);
  // The wait in force, for the message "back-off 40s restarting ...".
  Duration current() const { return current_; }

 private:
  Duration current_{};
  bool ended_before_ = false;
};

}  // namespace muster::agent
