#include "agent/probes/pod_probes.h"

#include <algorithm>
#include <utility>

#include "agent/pod_workers/pod_inputs.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

constexpr std::array<const char*, kProbeKinds> kFields = {"startupProbe", "livenessProbe",
                                                          "readinessProbe"};
constexpr std::array<std::string_view, kProbeKinds> kNames = {"Startup", "Liveness", "Readiness"};

constexpr size_t Number(ProbeKind kind) { return static_cast<size_t>(kind); }

}  // namespace

PodProbes::PodProbes(Loop& loop, HandlerRunner& runner, const json::Value& pod, bool recovered,
                     Hooks hooks)
    : loop_(loop), runner_(runner), uid_(pod["metadata"]["uid"].Str()), hooks_(std::move(hooks)) {
  for (const json::Value& spec : AllContainers(pod)) {
    Container& container = containers_.emplace_back();
    container.spec = spec;
    for (int kind = 0; kind < kProbeKinds; ++kind) {
      const json::Value& probe = spec[kFields[static_cast<size_t>(kind)]];
      if (probe.IsNull()) continue;
      const ProbeSpec numbers = ProbeSpecOf(probe);
      const std::string key = fmt::format("{}/{}/{}", uid_, spec["name"].AsString(), kind);
      const Duration shift = recovered
                                 ? Duration(static_cast<int64_t>(
                                       Hash64(key) % static_cast<uint64_t>(numbers.period.count())))
                                 : Duration();
      container.probes[static_cast<size_t>(kind)] = std::make_unique<Probe>(Probe{
          ProbeState(static_cast<ProbeKind>(kind), numbers, loop.Now() + shift), probe, nullptr});
    }
  }
}

PodProbes::~PodProbes() { loop_.Cancel(timer_); }

const PodProbes::Probe* PodProbes::Find(size_t container, ProbeKind kind) const {
  return containers_[container].probes[Number(kind)].get();
}

void PodProbes::Begin(size_t container, Time started, std::optional<Known> known) {
  const Time now = loop_.Now();
  const auto verdict = [](bool good) {
    return good ? std::optional(ProbeVerdict::kSuccess) : std::nullopt;
  };
  const std::array<std::optional<ProbeVerdict>, kProbeKinds> verdicts = {
      verdict(known && known->started), std::nullopt, verdict(known && known->ready)};
  for (size_t kind = 0; kind < kProbeKinds; ++kind) {
    Probe* probe = containers_[container].probes[kind].get();
    if (probe == nullptr) continue;
    probe->run.reset();
    probe->state.Begin(std::min(started, now), now, verdicts[kind]);
  }
  Probe* readiness = containers_[container].probes[Number(ProbeKind::kReadiness)].get();
  if (readiness != nullptr && !known && Started(container)) readiness->state.Hurry(now);
  Schedule();
}

void PodProbes::End(size_t container) {
  for (const auto& probe : containers_[container].probes) {
    if (probe == nullptr) continue;
    probe->run.reset();
    probe->state.End();
  }
  Schedule();
}

void PodProbes::RetireLivenessAndStartup() {
  for (Container& container : containers_) {
    for (const ProbeKind kind : {ProbeKind::kStartup, ProbeKind::kLiveness}) {
      if (const auto& probe = container.probes[Number(kind)]) {
        probe->run.reset();
        probe->state.Retire();
      }
    }
  }
}

bool PodProbes::Started(size_t container) const {
  const Probe* startup = Find(container, ProbeKind::kStartup);
  return startup == nullptr || startup->state.verdict() == ProbeVerdict::kSuccess;
}

bool PodProbes::Ready(size_t container) const {
  const Probe* readiness = Find(container, ProbeKind::kReadiness);
  return Started(container) &&
         (readiness == nullptr || readiness->state.verdict() == ProbeVerdict::kSuccess);
}

std::optional<ProbeKind> PodProbes::Failed(size_t container) const {
  for (const ProbeKind kind : {ProbeKind::kLiveness, ProbeKind::kStartup}) {
    const Probe* probe = Find(container, kind);
    if (probe != nullptr && probe->state.verdict() == ProbeVerdict::kFailure) return kind;
  }
  return std::nullopt;
}

void PodProbes::Schedule() {
  std::optional<Time> first;
  for (size_t i = 0; i < containers_.size(); ++i) {
    for (const auto& probe : containers_[i].probes) {
      if (probe == nullptr) continue;
      const std::optional<Time> due = probe->state.Due(Started(i));
      if (due && (!first || *due < *first)) first = due;
    }
  }
  loop_.Cancel(timer_);
  timer_ = 0;
  if (!first) return;
  timer_ = loop_.After(*first - loop_.Now(), [this] {
    timer_ = 0;
    AskDue();
  });
}

void PodProbes::AskDue() {
  const Time now = loop_.Now();
  for (size_t i = 0; i < containers_.size(); ++i) {
    for (size_t kind = 0; kind < kProbeKinds; ++kind) {
      const auto& probe = containers_[i].probes[kind];
      if (probe == nullptr) continue;
      const std::optional<Time> due = probe->state.Due(Started(i));
      if (due && *due <= now) Ask(i, static_cast<ProbeKind>(kind));
    }
  }
  Schedule();
}

void PodProbes::Ask(size_t container, ProbeKind kind) {
  Probe& probe = *containers_[container].probes[Number(kind)];
  probe.state.Asked();
  const json::Value& spec = containers_[container].spec;
  auto done = lifetime_.Guard(
      [this, container, kind](const HandlerResult& result) { OnAnswer(container, kind, result); });
  const Result<HandlerAction> action = ProbeActionOf(probe.spec, spec, hooks_.pod_ip());
  if (!action) {
    return loop_.Post([done = std::move(done), why = action.error().message()]() mutable {
      done(HandlerResult{HandlerResult::Is::kUnknown, std::string(why)});
    });
  }
  probe.run =
      runner_.Run({uid_, spec["name"].Str()}, *action, probe.state.spec().timeout, std::move(done));
}

void PodProbes::OnAnswer(size_t container, ProbeKind kind, const HandlerResult& result) {
  Probe& probe = *containers_[container].probes[Number(kind)];
  const bool was_started = Started(container);
  const bool known = result.is != HandlerResult::Is::kUnknown;
  const std::string_view name = kNames[Number(kind)];
  if (!known) {
    hooks_.on_warning("Unhealthy", fmt::format("{} probe errored and resulted in unknown state: {}",
                                               name, result.output));
  } else if (!result.Good()) {
    hooks_.on_warning("Unhealthy", fmt::format("{} probe failed: {}", name, result.output));
  } else if (result.is == HandlerResult::Is::kWarning) {
    hooks_.on_warning("ProbeWarning", fmt::format("{} probe warning: {}", name, result.output));
  }
  const Time now = loop_.Now();
  const bool changed =
      probe.state.Answered(known ? std::optional(result.Good()) : std::nullopt, now);
  if (!was_started && Started(container)) {
    if (const auto& readiness = containers_[container].probes[Number(ProbeKind::kReadiness)])
      readiness->state.Hurry(now);
  }
  probe.run.reset();  // `result` is gone
  Schedule();
  if (changed) hooks_.on_change(container);
}

}  // namespace muster::agent
