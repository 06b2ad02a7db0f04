// src/agent/pod_workers/container_stop.h
//
// ContainerStop: what to do when to one container that has to end: its preStop hook, its turn, its
// stop signal, SIGKILL, and at last the end of the sandbox whose shim does not react.
//
// Life cycle: from the decision to the container's exit.
// Thread:     any (a value, without a clock).
// Invariants: a container is signalled only after its hook has ended and those that it must outlive
//             have, or its grace is over; hook and turn count against the grace; after the signal
//             it has at least kMinStopWindow, unless it has no grace at all.
// Source:     the kubelet's killContainer and terminationOrdering.

#pragma once

#include <cstdint>

#include "base/time.h"

namespace muster::agent {

inline constexpr Duration kMinStopWindow = seconds(2);
inline constexpr Duration kKillPatience = seconds(5);  // SIGKILL to the end of the container

class ContainerStop {
 public:
  enum class Do : uint8_t { kWait, kRunHook, kSignal, kKill, kKillSandbox };

  ContainerStop(Time now, bool has_hook)
      : since_(now), phase_(has_hook ? Phase::kHook : Phase::kTurn) {}

  void HookDone() {
    if (phase_ == Phase::kHookRuns) phase_ = Phase::kTurn;
  }
  // The next thing to do, once each; kWait: nothing before due() or a change. `grace` counts from
  // the beginning and may become less; 0: SIGKILL at once. `turn`: those that it outlives are gone.
  Do Next(Time now, Duration grace, bool turn);

  Time since() const { return since_; }
  Time due() const { return due_; }

 private:
  enum class Phase : uint8_t { kHook, kHookRuns, kTurn, kSignalled, kKilled };

  Time since_, signalled_{}, due_{};
  Phase phase_;
};

}  // namespace muster::agent
