#include "cli/waiting.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/strings.h"
#include "schema/conditions.h"
#include "schema/pod_phase.h"

namespace muster::cli {
namespace {

// Reasons that pass by themselves in a moment.
bool IsOrdinary(std::string_view reason) {
  return reason == "ContainerCreating" || reason == "PodInitializing";
}

// What a shell's exit code says that its number does not.
std::string_view MeaningOf(const json::Value& terminated) {
  return terminated["exitCode"].AsInt() == 127
             ? ": a program was not found; it must be in the image or, with --images machine, "
               "installed on this machine"
             : "";
}

std::string WhyContainersWait(const json::Value& pod) {
  std::string ordinary;
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const json::Value& status : pod["status"][list].items()) {
      const json::Value& waiting = status["state"]["waiting"];
      const std::string_view reason = waiting["reason"].AsString();
      if (reason.empty()) continue;
      const std::string_view message = waiting["message"].AsString();
      std::string text = fmt::format("container {}: {}{}{}", status["name"].AsString(), reason,
                                     message.empty() ? "" : ": ", message);
      const json::Value& last = status["lastState"]["terminated"];
      if (reason == "CrashLoopBackOff" && !last.IsNull())
        text += fmt::format("; it ended with {}{}", HowContainerEnded(last), MeaningOf(last));
      if (!IsOrdinary(reason)) return text;
      if (ordinary.empty() || !message.empty()) ordinary = std::move(text);
    }
  }
  return ordinary;
}

}  // namespace

std::string HowContainerEnded(const json::Value& terminated) {
  // A program may have left a text; what is wrong is usually its last line.
  std::string_view message = Trim(terminated["message"].AsString());
  if (const size_t line = message.rfind('\n'); line != message.npos)
    message = Trim(message.substr(line + 1));
  return fmt::format("exit code {} ({}{}{})", terminated["exitCode"].AsInt(),
                     terminated["reason"].AsString(), message.empty() ? "" : ": ", message);
}

const json::Value& FindCondition(const json::Value& object, std::string_view type) {
  return schema::FindCondition(object["status"]["conditions"], type);
}

bool ConditionHolds(const json::Value& object, std::string_view type) {
  return schema::ConditionHolds(object["status"]["conditions"], type);
}

std::string WhyPodWaits(const json::Value& pod) {
  const std::string_view phase = pod["status"]["phase"].AsString();
  if (schema::IsFinalPhase(phase)) return "";
  const json::Value& scheduled = FindCondition(pod, "PodScheduled");
  if (scheduled["status"].AsString() == "False") {
    const std::string_view message = scheduled["message"].AsString();
    return std::string(message.empty() ? scheduled["reason"].AsString() : message);
  }
  const bool has_gates = !pod["spec"]["schedulingGates"].empty();
  if (pod["spec"]["nodeName"].AsString().empty()) {
    return has_gates ? "its scheduling gates are not removed"
                     : "not looked at by the scheduler yet";
  }
  if (std::string why = WhyContainersWait(pod); !why.empty()) return why;
  return phase == "Running"
             ? ""
             : fmt::format("node {} is starting it", pod["spec"]["nodeName"].AsString());
}

bool PodRuns(const json::Value& pod) {
  const json::Value& containers = pod["status"]["containerStatuses"];
  return pod["status"]["phase"].AsString() == "Running" && WhyPodWaits(pod).empty() &&
         (containers.empty() || std::ranges::any_of(containers.items(), [](const json::Value& one) {
            return one["state"].Has("running");
          }));
}

std::string WhyPodIsStuck(const json::Value& pod) {
  const std::string_view phase = pod["status"]["phase"].AsString();
  if (schema::IsFinalPhase(phase)) return "";
  if (FindCondition(pod, "PodScheduled")["status"].AsString() == "False") return WhyPodWaits(pod);
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const json::Value& status : pod["status"][list].items()) {
      const json::Value& waiting = status["state"]["waiting"];
      if (waiting.IsNull()) continue;
      const bool told = !waiting["message"].AsString().empty();
      if (told || !IsOrdinary(waiting["reason"].AsString())) return WhyContainersWait(pod);
    }
  }
  return "";
}

std::string WhyPodsWait(const std::map<std::string, json::Value>& pods) {
  std::string started_late;
  for (const auto& [name, pod] : pods) {
    std::string why = WhyPodWaits(pod);
    if (why.empty()) continue;
    if (FindCondition(pod, "PodScheduled")["status"].AsString() == "False") return why;
    if (started_late.empty()) started_late = name + ": " + why;
  }
  return started_late;
}

bool JobSucceeded(const json::Value& job) {
  return ConditionHolds(job, "Succeeded") || ConditionHolds(job, "Complete") ||
         ConditionHolds(job, "Completed");
}

bool JobFinished(const json::Value& job) {
  return JobSucceeded(job) || ConditionHolds(job, "Failed");
}

}  // namespace muster::cli
