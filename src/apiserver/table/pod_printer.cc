// The pod table. Logic: k8s.io/kubernetes pkg/printers/internalversion printPod.

#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "apiserver/table/printers.h"
#include "schema/conditions.h"
#include "schema/pod_phase.h"

namespace muster::apiserver {
namespace {

// How far a pod's containers are.
struct PodSummary {
  std::string reason;
  int64_t restarts = 0;
  std::optional<Time> last_restart;
  int64_t ready = 0;
  int64_t total = 0;
};

bool ConditionIsTrue(const json::Value& pod, std::string_view type) {
  return schema::ConditionHolds(pod["status"]["conditions"], type);
}

bool IsSidecar(const json::Value& pod, std::string_view container) {
  for (const json::Value& spec : pod["spec"]["initContainers"].items()) {
    if (spec["name"].AsString() == container) return spec["restartPolicy"].AsString() == "Always";
  }
  return false;
}

// "OOMKilled", "Signal:9", "ExitCode:3".
std::string TerminationText(const json::Value& terminated) {
  if (!terminated["reason"].AsString().empty()) return terminated["reason"].Str();
  if (terminated["signal"].AsInt() != 0)
    return fmt::format("Signal:{}", terminated["signal"].AsInt());
  return fmt::format("ExitCode:{}", terminated["exitCode"].AsInt());
}

void CountRestarts(const json::Value& status, int64_t& restarts, std::optional<Time>& last) {
  restarts += status["restartCount"].AsInt();
  const std::optional<Time> finished =
      ParseTime(status["lastState"]["terminated"]["finishedAt"].AsString());
  if (finished && (!last || *last < *finished)) last = finished;
}

// True while an init container keeps the pod from starting; `summary.reason` then says which or
// why.
bool SummarizeInitContainers(const json::Value& pod, PodSummary& summary, PodSummary& sidecars) {
  const json::Array& statuses = pod["status"]["initContainerStatuses"].items();
  for (size_t i = 0; i < statuses.size(); ++i) {
    const json::Value& status = statuses[i];
    const bool sidecar = IsSidecar(pod, status["name"].AsString());
    CountRestarts(status, summary.restarts, summary.last_restart);
    if (sidecar) CountRestarts(status, sidecars.restarts, sidecars.last_restart);
    const json::Value& terminated = status["state"]["terminated"];
    const std::string_view waiting = status["state"]["waiting"]["reason"].AsString();
    if (!terminated.IsNull() && terminated["exitCode"].AsInt() == 0) continue;
    if (sidecar && status["started"].AsBool()) {
      if (status["ready"].AsBool()) ++summary.ready;
      continue;
    }
    if (!terminated.IsNull()) {
      summary.reason = "Init:" + TerminationText(terminated);
    } else if (!waiting.empty() && waiting != "PodInitializing") {
      summary.reason = fmt::format("Init:{}", waiting);
    } else {
      summary.reason = fmt::format("Init:{}/{}", i, pod["spec"]["initContainers"].size());
    }
    return true;
  }
  return false;
}

void SummarizeContainers(const json::Value& pod, PodSummary& summary) {
  bool has_running = false;
  const json::Array& statuses = pod["status"]["containerStatuses"].items();
  for (size_t i = statuses.size(); i-- > 0;) {
    const json::Value& status = statuses[i];
    CountRestarts(status, summary.restarts, summary.last_restart);
    const json::Value& state = status["state"];
    if (!state["waiting"]["reason"].AsString().empty()) {
      summary.reason = state["waiting"]["reason"].Str();
    } else if (!state["terminated"].IsNull()) {
      summary.reason = TerminationText(state["terminated"]);
    } else if (status["ready"].AsBool() && !state["running"].IsNull()) {
      has_running = true;
      ++summary.ready;
    }
  }
  if (summary.reason == "Completed" && has_running) {
    summary.reason = ConditionIsTrue(pod, "Ready") ? "Running" : "NotReady";
  }
}

PodSummary Summarize(const json::Value& pod) {
  const json::Value& status = pod["status"];
  const std::string_view phase = status["phase"].AsString();
  PodSummary summary;
  summary.reason = status["reason"].Str(phase);
  if (summary.reason.empty()) summary.reason = phase;
  const json::Value& scheduled = schema::FindCondition(status["conditions"], "PodScheduled");
  if (scheduled["reason"].AsString() == "SchedulingGated") summary.reason = "SchedulingGated";
  summary.total = static_cast<int64_t>(pod["spec"]["containers"].size());
  for (const json::Value& container : pod["spec"]["initContainers"].items()) {
    if (container["restartPolicy"].AsString() == "Always") ++summary.total;
  }
  PodSummary sidecars;
  const bool initializing = SummarizeInitContainers(pod, summary, sidecars);
  if (!initializing || ConditionIsTrue(pod, "Initialized")) {
    summary.restarts = sidecars.restarts;
    summary.last_restart = sidecars.last_restart;
    SummarizeContainers(pod, summary);
  }
  if (pod["metadata"].Has("deletionTimestamp")) {
    if (status["reason"].AsString() == "NodeLost") {
      summary.reason = "Unknown";
    } else if (!schema::IsFinalPhase(phase)) {
      summary.reason = "Terminating";
    }
  }
  return summary;
}

std::string ReadinessGates(const json::Value& pod) {
  const json::Array& gates = pod["spec"]["readinessGates"].items();
  if (gates.empty()) return "<none>";
  const auto met = std::ranges::count_if(gates, [&](const json::Value& gate) {
    return ConditionIsTrue(pod, gate["conditionType"].AsString());
  });
  return fmt::format("{}/{}", met, gates.size());
}

}  // namespace

json::Array PodCells(const json::Value& pod, Time now) {
  const PodSummary summary = Summarize(pod);
  std::string restarts = std::to_string(summary.restarts);
  if (summary.restarts != 0 && summary.last_restart) {
    restarts += fmt::format(" ({} ago)", HumanDuration(now - *summary.last_restart));
  }
  return {pod["metadata"]["name"],
          fmt::format("{}/{}", summary.ready, summary.total),
          summary.reason,
          restarts,
          AgeCell(pod["metadata"]["creationTimestamp"], now),
          OrNone(pod["status"]["podIPs"].At(0)["ip"].AsString(pod["status"]["podIP"].AsString())),
          OrNone(pod["spec"]["nodeName"].AsString()),
          OrNone(pod["status"]["nominatedNodeName"].AsString()),
          ReadinessGates(pod)};
}

}  // namespace muster::apiserver
