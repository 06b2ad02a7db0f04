// src/agent/probes/pod_probes.h
//
// PodProbes: asks the probes of one pod's containers when they are due, and knows what follows:
// which container has started up, which is ready, which has to be killed.
//
// Life cycle: one per PodWorker; Begin() and End() with each run of a container. Destroying it ends
//             what is being asked.
// Thread:     the loop thread; hooks run from a timer or an answer, never from inside a call.
// Invariants: one question of a probe at a time, each within its timeout; on_change runs only when
//             what Started(), Ready() or Failed() say of a container has changed.

#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/probes/handler_runner.h"
#include "agent/probes/probe_state.h"
#include "client/lifetime.h"
#include "json/value.h"
#include "loop/loop.h"

namespace muster::agent {

class PodProbes {
 public:
  struct Hooks {
    std::function<void(size_t container)> on_change;
    std::function<void(std::string_view reason, const std::string& message)> on_warning;
    std::function<std::string()> pod_ip;
  };
  // What an earlier agent knew of a run that goes on.
  struct Known {
    bool started = false, ready = false;
  };

  // Containers are counted as AllContainers(pod) has them. After a restart of the agent
  // (`recovered`) the probes of a node are not asked all at once.
  PodProbes(Loop& loop, HandlerRunner& runner, const json::Value& pod, bool recovered, Hooks hooks);
  ~PodProbes();

  void Begin(size_t container, Time started, std::optional<Known> known = {});
  void End(size_t container);
  // The pod ends: only readiness is asked from now on, as upstream.
  void RetireLivenessAndStartup();

  // Of a container that runs.
  bool Started(size_t container) const;
  bool Ready(size_t container) const;
  // The probe because of which it has to be killed.
  std::optional<ProbeKind> Failed(size_t container) const;

 private:
  struct Probe {
    ProbeState state;
    json::Value spec;
    std::unique_ptr<HandlerRun> run;
  };
  struct Container {
    json::Value spec;
    std::array<std::unique_ptr<Probe>, kProbeKinds> probes;  // by kind, null: it has none
  };
  const Probe* Find(size_t container, ProbeKind kind) const;
  void Schedule();
  void AskDue();
  void Ask(size_t container, ProbeKind kind);
  void OnAnswer(size_t container, ProbeKind kind, const HandlerResult& result);

  Loop& loop_;
  HandlerRunner& runner_;
  const std::string uid_;
  Hooks hooks_;
  std::vector<Container> containers_;
  TimerId timer_ = 0;
  client::Lifetime lifetime_;
};

}  // namespace muster::agent
