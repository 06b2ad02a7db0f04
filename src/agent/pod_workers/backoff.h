// src/agent/pod_workers/backoff.h
//
// CrashBackoff: how long a container that ends again and again waits before the next start: 10 s,
// doubled at each restart up to 5 minutes, forgotten after a run of twice the maximum.
//
// Thread: any (a value).
// Source: the kubelet's MaxContainerBackOff and flowcontrol.Backoff.

#pragma once

#include <string_view>

#include "base/time.h"

namespace muster::agent {

inline constexpr Duration kInitialBackoff = seconds(10);
inline constexpr Duration kMaxBackoff = seconds(300);

// When a container ended, on the loop's clock. `stamp` is the shim's: the machine's wall clock,
// which the loop's follows slowly when it is set: they may be hours apart (base/smooth_clock.h).
// `just_now`: we were there when it ended. Never after `now`.
Time EndedAt(std::string_view stamp, Time now, bool just_now);

class CrashBackoff {
 public:
  // The container ended at `ended` after running for `ran`: when it may start again. The first end
  // costs nothing, as upstream: the container is started again at once.
  Time OnExit(Duration ran, Time ended);
  // The wait in force, for the message "back-off 40s restarting ...".
  Duration current() const { return current_; }

 private:
  Duration current_{};
  bool ended_before_ = false;
};

}  // namespace muster::agent
