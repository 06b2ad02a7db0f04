#include "agent/pod_workers/pod_status.h"

#include <algorithm>

#include "agent/pod_workers/pod_inputs.h"
#include "agent/runtime/signal_names.h"
#include "base/strings.h"
#include "schema/conditions.h"
#include "schema/disruption_target.h"
#include "schema/pod_phase.h"
#include "schema/pod_qos.h"

namespace muster::agent {
namespace {

using Is = ContainerRuntimeState::Is;

json::Value Terminated(const ContainerExit& exit, std::string_view uid, std::string_view name,
                       int attempt) {
  json::Value out = json::Obj({{"exitCode", exit.exit_code}, {"reason", exit.reason}});
  if (!exit.message.empty()) out = out.Set("message", exit.message);
  const auto time = [](const std::string& text) -> json::Value {
    const auto parsed = ParseTime(text);
    return parsed ? json::Value(FormatTime(*parsed)) : json::Value();
  };
  out = out.Set("startedAt", time(exit.started_at)).Set("finishedAt", time(exit.finished_at));
  return out.Set("containerID", ContainerId(uid, name, attempt));
}

json::Value State(const ContainerRuntimeState& container, std::string_view uid) {
  switch (container.Shown()) {
    case Is::kRunning: {
      const auto started = ParseTime(container.started_at);
      return json::Obj(
          {{"running", json::Obj({{"startedAt", started ? FormatTime(*started) : ""}})}});
    }
    case Is::kTerminated:
      return json::Obj({{"terminated", Terminated(*container.exit, uid, container.name,
                                                  container.exit_attempt)}});
    case Is::kWaiting:
      break;
  }
  json::Value waiting = json::Obj({{"reason", container.waiting_reason}});
  if (!container.waiting_message.empty())
    waiting = waiting.Set("message", container.waiting_message);
  return json::Obj({{"waiting", waiting}});
}

json::Value DevicesStatus(const std::vector<AllocatedDevice>& devices) {
  json::Array out;
  for (size_t i = 0; i < devices.size();) {
    const std::string& resource = devices[i].resource;
    json::Array of_resource;
    for (; i < devices.size() && devices[i].resource == resource; ++i) {
      json::Value device =
          json::Obj({{"resourceID", devices[i].id}, {"health", devices[i].health}});
      if (!devices[i].message.empty()) device = device.Set("message", devices[i].message);
      of_resource.push_back(std::move(device));
    }
    out.push_back(json::Obj({{"name", resource}, {"resources", std::move(of_resource)}}));
  }
  return out;
}

}  // namespace

std::string StopSignalOf(const json::Value& spec, const ContainerRuntimeState& container) {
  const std::string_view own = spec["lifecycle"]["stopSignal"].AsString();
  if (!own.empty()) return std::string(own);
  const std::optional<int> number = SignalNamed(container.image_stop_signal);
  return number ? SignalName(*number) : "";
}

namespace {

json::Value ContainerStatus(const json::Value& spec, const ContainerRuntimeState& container,
                            std::string_view uid) {
  json::Value last = json::Obj();
  if (container.last_exit) {
    last = json::Obj({{"terminated", Terminated(*container.last_exit, uid, container.name,
                                                container.last_exit_attempt)}});
  }
  json::Value out =
      json::Obj({{"name", container.name},
                 {"state", State(container, uid)},
                 {"lastState", last},
                 {"ready", container.Ready()},
                 {"restartCount", std::max(container.attempt, 0)},
                 {"image", container.image.empty() ? spec["image"].Str() : container.image},
                 {"imageID", container.image_id}});
  if (container.attempt >= 0)
    out = out.Set("containerID", ContainerId(uid, container.name, container.attempt));
  if (!container.devices.empty())
    out = out.Set("allocatedResourcesStatus", DevicesStatus(container.devices));
  if (const std::string signal = StopSignalOf(spec, container); !signal.empty())
    out = out.Set("stopSignal", signal);
  return out.Set("started", container.Started());
}

bool RestartsAlways(const json::Value& pod) {
  return pod["spec"]["restartPolicy"].AsString("Always") == "Always";
}
bool RestartsNever(const json::Value& pod) {
  return pod["spec"]["restartPolicy"].AsString() == "Never";
}

struct Counts {
  int waiting = 0, running = 0, stopped = 0, succeeded = 0;
};

Counts CountContainers(const PodRuntimeState& state) {
  Counts counts;
  for (const ContainerRuntimeState& container : state.containers) {
    if (container.init) {
      // As upstream: of sidecars only those that run count.
      if (container.sidecar && container.Shown() == Is::kRunning) ++counts.running;
      continue;
    }
    switch (container.Shown()) {
      case Is::kRunning:
        ++counts.running;
        break;
      case Is::kTerminated:
        ++counts.stopped;
        if (container.Succeeded()) ++counts.succeeded;
        break;
      case Is::kWaiting:
        ++(container.last_exit ? counts.stopped : counts.waiting);
        break;
    }
  }
  return counts;
}

bool NothingRuns(const PodRuntimeState& state) {
  return std::none_of(
      state.containers.begin(), state.containers.end(),
      [](const ContainerRuntimeState& container) { return container.is == Is::kRunning; });
}

bool InitDone(const ContainerRuntimeState& container) {
  return container.sidecar ? container.Started() : container.Succeeded();
}

// Once the others have begun, init containers that run again do not take the pod back.
bool Begun(const PodRuntimeState& state) {
  return std::any_of(state.containers.begin(), state.containers.end(), [](const auto& container) {
    return !container.init && container.attempt >= (container.post_start_runs ? 1 : 0);
  });
}

struct Condition {
  std::string type;
  bool status;
  std::string reason, message;
};

json::Value ToJson(const json::Value& before, const Condition& condition, Time now) {
  const std::string status = condition.status ? "True" : "False";
  json::Value out =
      json::Obj({{"type", condition.type},
                 {"status", status},
                 {"lastProbeTime", nullptr},
                 {"lastTransitionTime", schema::TransitionTime(before, status, now)}});
  if (!condition.reason.empty()) out = out.Set("reason", condition.reason);
  if (!condition.message.empty()) out = out.Set("message", condition.message);
  return out;
}

std::string Uninitialized(const PodRuntimeState& state) {
  std::vector<std::string> names;
  for (const ContainerRuntimeState& container : state.containers) {
    if (container.init && !InitDone(container)) names.push_back(container.name);
  }
  return Join(names, " ");
}

std::string Unready(const PodRuntimeState& state) {
  std::vector<std::string> names;
  for (const ContainerRuntimeState& container : state.containers) {
    const bool counts = container.sidecar || !container.init;
    if (counts && !container.Ready()) names.push_back(container.name);
  }
  return Join(names, " ");
}

// Why the conditions that the pod's readinessGates name keep it from being ready; "": they do not.
std::string ClosedGates(const json::Value& pod) {
  std::vector<std::string> out;
  for (const json::Value& gate : pod["spec"]["readinessGates"].items()) {
    const std::string type = gate["conditionType"].Str();
    const json::Value condition = schema::FindCondition(pod["status"]["conditions"], type);
    if (condition.IsNull()) {
      out.push_back(fmt::format(
          "corresponding condition of pod readiness gate \"{}\" does not exist.", type));
    } else if (condition["status"].AsString() != "True") {
      out.push_back(fmt::format("the status of pod readiness gate \"{}\" is not \"True\", but {}",
                                type, condition["status"].AsString()));
    }
  }
  return Join(out, ", ");
}

std::vector<Condition> OwnConditions(const json::Value& pod, const PodRuntimeState& state,
                                     const std::string& phase) {
  Condition initialized = {"Initialized", true, "", ""};
  Condition ready = {"Ready", true, "", ""};
  Condition containers_ready = {"ContainersReady", true, "", ""};
  const std::string uninitialized = Begun(state) ? "" : Uninitialized(state);
  const std::string unready = Unready(state);
  if (phase == "Succeeded") {
    initialized.reason = "PodCompleted";
    for (Condition* condition : {&ready, &containers_ready})
      *condition = {condition->type, false, "PodCompleted", ""};
  } else {
    if (!uninitialized.empty()) {
      initialized = {"Initialized", false, "ContainersNotInitialized",
                     fmt::format("containers with incomplete status: [{}]", uninitialized)};
    }
    if (phase == "Failed") {
      for (Condition* condition : {&ready, &containers_ready})
        *condition = {condition->type, false, "PodFailed", ""};
    } else if (!unready.empty() || !state.sandbox_ready) {
      const std::string message = fmt::format("containers with unready status: [{}]", unready);
      for (Condition* condition : {&ready, &containers_ready}) {
        *condition = {condition->type, false, "ContainersNotReady", message};
      }
    } else if (const std::string closed = ClosedGates(pod); !closed.empty()) {
      ready = {"Ready", false, "ReadinessGatesNotReady", closed};
    }
  }
  std::vector<Condition> out = {{"PodReadyToStartContainers", state.sandbox_ready, "", ""},
                                initialized,
                                ready,
                                containers_ready,
                                {"PodScheduled", true, "", ""}};
  if (state.failed_reason == kEvicted)
    out.push_back({std::string(schema::kDisruptionTarget), true, "TerminationByKubelet",
                   state.failed_message});
  return out;
}

json::Value Conditions(const json::Value& pod, const PodRuntimeState& state,
                       const json::Value& written, const std::string& phase, Time now) {
  const json::Value& shown = pod["status"]["conditions"];
  json::Array out;
  const std::vector<Condition> own = OwnConditions(pod, state, phase);
  for (const Condition& condition : own) {
    json::Value before = schema::FindCondition(written, condition.type);
    if (before.IsNull()) before = schema::FindCondition(shown, condition.type);
    if (condition.type == "PodScheduled" && before["status"].AsString() == "True") {
      out.push_back(before);
    } else {
      out.push_back(ToJson(before, condition, now));
    }
  }
  for (const json::Value& condition : shown.items()) {
    const bool is_own = std::any_of(own.begin(), own.end(), [&](const Condition& mine) {
      return mine.type == condition["type"].AsString();
    });
    if (!is_own) out.push_back(condition);
  }
  return out;
}

}  // namespace

std::string ContainerId(std::string_view pod_uid, std::string_view container, int attempt) {
  const std::string key = fmt::format("{}/{}/{}", pod_uid, container, attempt);
  std::string out = "muster://";
  uint64_t hash = Hash64(key);
  for (int i = 0; i < 4; ++i) {
    out += fmt::format("{:016x}", hash);
    hash = Hash64(key, hash);
  }
  return out;
}

std::string PodPhase(const json::Value& pod, const PodRuntimeState& state) {
  const std::string_view reported = pod["status"]["phase"].AsString();
  if (schema::IsFinalPhase(reported)) return std::string(reported);
  if (!state.failed_reason.empty()) return "Failed";
  const Counts counts = CountContainers(state);
  if (state.terminal && NothingRuns(state)) {
    return counts.stopped > 0 && counts.waiting == 0 && counts.stopped == counts.succeeded
               ? "Succeeded"
               : "Failed";
  }
  const bool begun = Begun(state);
  for (const ContainerRuntimeState& container : state.containers) {
    if (!container.init || InitDone(container)) continue;
    if (!container.sidecar && container.is == Is::kTerminated && RestartsNever(pod))
      return "Failed";
    if (!begun) return "Pending";
  }
  if (counts.waiting > 0) return counts.stopped > 0 ? "Running" : "Pending";
  if (counts.running > 0) return "Running";
  if (counts.stopped == 0) return "Pending";
  if (RestartsAlways(pod)) return "Running";
  if (counts.stopped == counts.succeeded) return "Succeeded";
  return RestartsNever(pod) ? "Failed" : "Running";
}

json::Value BuildPodStatus(const json::Value& pod, const PodRuntimeState& state,
                           const json::Value& written, Time now) {
  const std::string uid = pod["metadata"]["uid"].Str();
  const std::string phase = PodPhase(pod, state);
  json::Array init_statuses, statuses;
  const std::vector<json::Value> specs = AllContainers(pod);
  for (size_t i = 0; !state.rejected && i < state.containers.size() && i < specs.size(); ++i) {
    const ContainerRuntimeState& container = state.containers[i];
    (container.init ? init_statuses : statuses)
        .push_back(ContainerStatus(specs[i], container, uid));
  }
  json::Value out = json::Obj({{"phase", phase},
                               {"conditions", Conditions(pod, state, written, phase, now)},
                               {"hostIP", state.host_ip},
                               {"hostIPs", json::List({json::Obj({{"ip", state.host_ip}})})},
                               {"startTime", state.start_time}});
  if (!state.pod_ip.empty()) {
    out = out.Set("podIP", state.pod_ip)
              .Set("podIPs", json::List({json::Obj({{"ip", state.pod_ip}})}));
  }
  if (!init_statuses.empty()) out = out.Set("initContainerStatuses", std::move(init_statuses));
  // It is a patch: null takes away what was shown while the pod waited.
  out = out.Set("containerStatuses",
                state.rejected ? json::Value() : json::Value(std::move(statuses)));
  if (state.rejected) out = out.Set("initContainerStatuses", json::Value());
  if (!state.failed_reason.empty()) {
    out = out.Set("reason", state.failed_reason).Set("message", state.failed_message);
  }
  return out.Set("qosClass", QosClass(pod));
}

std::string QosClass(const json::Value& pod) {
  if (const auto given = pod["status"]["qosClass"].AsString(); !given.empty())
    return std::string(given);
  return std::string(schema::QosClassOf(pod));
}

}  // namespace muster::agent
