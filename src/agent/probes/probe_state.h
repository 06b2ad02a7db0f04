// src/agent/probes/probe_state.h
//
// ProbeState: when one probe of a container is asked next, and what its answers amount to.
//
// Life cycle: one per probe of a pod; Begin() and End() with each run of the container.
// Thread:     any (a value, without a clock).
// Invariants: asked at its ticks only, one question at a time; the verdict changes only after as
//             many like answers in a row as its threshold says.
// Source:     the kubelet's prober worker.

#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"
#include "json/value.h"

namespace muster::agent {

enum class ProbeKind : uint8_t { kStartup, kLiveness, kReadiness };
inline constexpr int kProbeKinds = 3;
enum class ProbeVerdict : uint8_t { kUnknown, kSuccess, kFailure };

struct ProbeSpec {
  Duration initial_delay{}, period = seconds(10), timeout = seconds(1);
  int64_t success_threshold = 1, failure_threshold = 3;
};
// Of a v1 Probe; what is absent or 0 has upstream's default.
ProbeSpec ProbeSpecOf(const json::Value& probe);

class ProbeState {
 public:
  // Ticks are `first_tick` and every period after it.
  ProbeState(ProbeKind kind, const ProbeSpec& spec, Time first_tick)
      : kind_(kind), spec_(spec), first_tick_(first_tick) {}

  const ProbeSpec& spec() const { return spec_; }
  ProbeVerdict verdict() const { return verdict_; }

  // The container runs since `started`. `known`: what an earlier agent knew of this very run.
  void Begin(Time started, Time now, std::optional<ProbeVerdict> known = {});
  void End();
  // Asks at once if it may by then: the container has just started up.
  void Hurry(Time now);
  // Never again: the pod ends.
  void Retire() { retired_ = true; }

  // When to ask; nothing while there is nothing to ask. `up`: the container has started up.
  std::optional<Time> Due(bool up) const;
  void Asked() { asking_ = true; }
  // True: the verdict has changed. `good` is absent when the question could not be asked.
  bool Answered(std::optional<bool> good, Time now);

 private:
  Time TickAfter(Time time) const;  // the first one that is not before it

  ProbeKind kind_;
  ProbeSpec spec_;
  Time first_tick_, may_ask_{}, next_{};
  ProbeVerdict verdict_ = ProbeVerdict::kUnknown;
  bool runs_ = false, asking_ = false, retired_ = false;
  bool settled_ = false;  // until the next run of the container: it started, or will be killed
  bool last_ = false;     // answer
  int64_t in_a_row_ = 0;
};

}  // namespace muster::agent
