#include "agent/probes/probe_state.h"

#include <algorithm>

namespace muster::agent {
namespace {

int64_t Positive(const json::Value& probe, const char* field, int64_t fallback) {
  const int64_t value = probe[field].AsInt();
  return value > 0 ? value : fallback;
}

// A probe that was not asked yet is taken for this: nobody is ready or has started up before he
// says so, and nobody is killed.
ProbeVerdict Assumed(ProbeKind kind) {
  switch (kind) {
    case ProbeKind::kStartup:
      return ProbeVerdict::kUnknown;
    case ProbeKind::kLiveness:
      return ProbeVerdict::kSuccess;
    case ProbeKind::kReadiness:
      break;
  }
  return ProbeVerdict::kFailure;
}

}  // namespace

ProbeSpec ProbeSpecOf(const json::Value& probe) {
  ProbeSpec spec;
  spec.initial_delay = seconds(std::max<int64_t>(probe["initialDelaySeconds"].AsInt(), 0));
  spec.period = seconds(Positive(probe, "periodSeconds", 10));
  spec.timeout = seconds(Positive(probe, "timeoutSeconds", 1));
  spec.success_threshold = Positive(probe, "successThreshold", 1);
  spec.failure_threshold = Positive(probe, "failureThreshold", 3);
  return spec;
}

Time ProbeState::TickAfter(Time time) const {
  if (time <= first_tick_) return first_tick_;
  const auto periods = (time - first_tick_ + spec_.period - Duration(1)) / spec_.period;
  return first_tick_ + periods * spec_.period;
}

void ProbeState::Begin(Time started, Time now, std::optional<ProbeVerdict> known) {
  runs_ = true;
  asking_ = false;
  in_a_row_ = 0;
  verdict_ = known.value_or(Assumed(kind_));
  settled_ = kind_ == ProbeKind::kStartup && verdict_ == ProbeVerdict::kSuccess;
  may_ask_ = started + spec_.initial_delay;
  next_ = TickAfter(std::max(now, may_ask_));
}

void ProbeState::End() {
  runs_ = asking_ = false;
  verdict_ = ProbeVerdict::kFailure;
}

void ProbeState::Hurry(Time now) {
  if (runs_ && now >= may_ask_) next_ = now;
}

std::optional<Time> ProbeState::Due(bool up) const {
  if (!runs_ || asking_ || settled_ || retired_) return std::nullopt;
  // Before it has started up, its startup probe alone is asked.
  if ((kind_ == ProbeKind::kStartup) == up) return std::nullopt;
  return next_;
}

bool ProbeState::Answered(std::optional<bool> good, Time now) {
  asking_ = false;
  next_ = TickAfter(now + Duration(1));
  if (!good || !runs_ || retired_) return false;
  in_a_row_ = in_a_row_ > 0 && last_ == *good ? in_a_row_ + 1 : 1;
  last_ = *good;
  if (in_a_row_ < (*good ? spec_.success_threshold : spec_.failure_threshold)) return false;
  const ProbeVerdict before = verdict_;
  verdict_ = *good ? ProbeVerdict::kSuccess : ProbeVerdict::kFailure;
  settled_ = kind_ == ProbeKind::kStartup || (kind_ == ProbeKind::kLiveness && !*good);
  return verdict_ != before;
}

}  // namespace muster::agent
