// What keeps one pod, or ended it.

#include <algorithm>

#include <fmt/core.h>

#include "base/strings.h"
#include "cli/explanation.h"
#include "cli/waiting.h"
#include "cluster/pod_info.h"
#include "scheduler/scheduler.h"
#include "schema/queued_kinds.h"

namespace muster::cli {
namespace {

std::string WhyPodFailed(const json::Value& pod) {
  const json::Value& status = pod["status"];
  std::string out = status["reason"].Str();
  if (const std::string_view message = status["message"].AsString(); !message.empty()) {
    out += (out.empty() ? "" : ": ") + std::string(message);
  }
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const json::Value& container : status[list].items()) {
      const json::Value& ended = container["state"]["terminated"];
      if (ended.IsNull() || ended["exitCode"].AsInt() == 0) continue;
      out += fmt::format("{}container {} ended with {}", out.empty() ? "" : "; ",
                         container["name"].AsString(), HowContainerEnded(ended));
    }
  }
  return out;
}

// Of a pod in phase Running, which it also is while its containers are ended and come again.
std::string HowPodRuns(const json::Value& pod) {
  const json::Value& containers = pod["status"]["containerStatuses"];
  std::string notes;
  for (const json::Value& container : containers.items()) {
    const json::Value& ended = container["state"]["terminated"];
    const json::Value& last = container["lastState"]["terminated"];
    if (!ended.IsNull()) {
      notes += fmt::format("; container {} ended with {}", container["name"].AsString(),
                           HowContainerEnded(ended));
    } else if (!last.IsNull()) {
      const int64_t restarts = container["restartCount"].AsInt();
      notes +=
          fmt::format("; container {} was restarted {} {}", container["name"].AsString(),
                      restarts == 1 ? "once, after" : fmt::format("{} times, last after", restarts),
                      HowContainerEnded(last));
    }
  }
  return fmt::format("{} node {}{}", PodRuns(pod) ? "runs on" : "does not run at the moment on",
                     pod["spec"]["nodeName"].AsString(), notes);
}

// Of one whose containers run: no Service leads to it yet.
std::string WhyNotReady(const json::Value& pod) {
  for (const json::Value& container : pod["status"]["containerStatuses"].items())
    if (!container["state"].Has("running")) return {};
  const json::Value& ready = FindCondition(pod, "Ready");
  if (ready["status"].AsString() != "False") return {};
  return fmt::format("; it is not ready: {}",
                     ready["message"].Str(ready["reason"].AsString()));
}

// Somebody has to find a node for it.
bool IsUnplaced(const json::Value& pod) {
  const std::string_view phase = pod["status"]["phase"].AsString();
  return (phase.empty() || phase == "Pending") && pod["spec"]["nodeName"].AsString().empty() &&
         !pod["metadata"].Has("deletionTimestamp");
}

bool IsServed(const json::Value& pod) {
  const std::vector<std::string> names = scheduler::SchedulerConfig().scheduler_names;
  return std::find(names.begin(), names.end(),
                   pod["spec"]["schedulerName"].Str("default-scheduler")) != names.end();
}

std::string_view StateOf(const json::Value& pod) {
  const std::string_view phase = pod["status"]["phase"].AsString();
  if (pod["metadata"].Has("deletionTimestamp")) return "Terminating";
  if (phase == "Failed" || phase == "Succeeded") return phase;
  return WhyPodWaits(pod).empty() ? "Running" : "Waiting";
}

// Behind the sentence of one that has no node: what holds it beside, or before, the cluster's room.
void AddHolds(Session& session, const json::Value& pod, Explanation& out) {
  std::vector<std::string> gates;
  for (const json::Value& gate : pod["spec"]["schedulingGates"].items())
    gates.push_back(gate["name"].Str());
  if (!gates.empty()) {
    if (gates == std::vector<std::string>{std::string(schema::kQueueGate)})
      return AddQueue(session, pod, out);
    out.lines.push_back(fmt::format("scheduling gates: {}; whoever set them must remove them first",
                                    Join(gates, ", ")));
    return;
  }
  if (!IsServed(pod)) return;
  const cluster::PodInfo info = cluster::ToPodInfo(pod);
  AddScheduling(session, scheduler::UnitOf(info), out);
}

}  // namespace

std::string SentenceForPod(const json::Value& pod) {
  const std::string_view phase = pod["status"]["phase"].AsString();
  if (pod["metadata"].Has("deletionTimestamp")) return "is being deleted";
  if (phase == "Failed") return "failed: " + WhyPodFailed(pod);
  if (phase == "Succeeded") return "is done";
  if (IsUnplaced(pod) && !IsServed(pod) && FindCondition(pod, "PodScheduled").IsNull()) {
    return fmt::format(
        "waits: no scheduler has looked at it; its schedulerName is {:?}, and muster serves {}",
        pod["spec"]["schedulerName"].AsString(),
        Join(scheduler::SchedulerConfig().scheduler_names, ", "));
  }
  const std::string why = WhyPodWaits(pod);
  if (!why.empty()) return "waits: " + why;
  return HowPodRuns(pod) + WhyNotReady(pod);
}

Result<Explanation> ExplainPod(Session& session, const json::Value& pod) {
  const json::Value& metadata = pod["metadata"];
  Explanation out;
  out.sentence = fmt::format("Pod {} {}", metadata["name"].AsString(), SentenceForPod(pod));
  out.json = json::Obj({{"kind", "Pod"},
                        {"namespace", metadata["namespace"].AsString()},
                        {"name", metadata["name"].AsString()},
                        {"state", StateOf(pod)},
                        {"message", SentenceForPod(pod)}});
  if (IsUnplaced(pod)) AddHolds(session, pod, out);
  const std::string_view phase = pod["status"]["phase"].AsString();
  if (phase == "Failed" || phase == "Running") AddPodFaults(session, pod, out);
  if (phase == "Succeeded" || phase == "Running") return out;
  std::string said = out.sentence;
  for (const std::string& line : out.lines) said += "\n" + line;
  RETURN_IF_ERROR(AddWarnings(session, pod, std::move(said), out));
  return out;
}

}  // namespace muster::cli
