#include "agent/pod_workers/container_stop.h"

#include <algorithm>

namespace muster::agent {

ContainerStop::Do ContainerStop::Next(Time now, Duration grace, bool turn) {
  const Time deadline = since_ + grace;
  const bool none = grace <= Duration();
  if (none && phase_ < Phase::kKilled) {
    phase_ = Phase::kKilled;
    due_ = now + kKillPatience;
    return Do::kKill;
  }
  switch (phase_) {
    case Phase::kHook:
      phase_ = Phase::kHookRuns;
      due_ = deadline;
      return Do::kRunHook;
    case Phase::kHookRuns:
    case Phase::kTurn:
      due_ = deadline;
      if (now < deadline && (phase_ == Phase::kHookRuns || !turn)) return Do::kWait;
      phase_ = Phase::kSignalled;
      signalled_ = now;
      return Do::kSignal;
    case Phase::kSignalled:
      due_ = std::max(deadline, signalled_ + kMinStopWindow);
      if (now < due_) return Do::kWait;
      phase_ = Phase::kKilled;
      due_ = now + kKillPatience;
      return Do::kKill;
    case Phase::kKilled:
      if (now < due_) return Do::kWait;
      due_ = now + kKillPatience;
      return Do::kKillSandbox;
  }
  return Do::kWait;
}

}  // namespace muster::agent
