#include "cli/ray_words.h"

#include <algorithm>

#include <fmt/core.h>

#include "cli/waiting.h"

namespace muster::cli {
namespace {

std::string SentenceForCluster(const json::Value& cluster) {
  const json::Value& status = cluster["status"];
  const std::string workers =
      fmt::format("{} of {} workers are ready", status["readyWorkerReplicas"].AsInt(),
                  status["desiredWorkerReplicas"].AsInt());
  const json::Value& head = FindCondition(cluster, "HeadPodReady");
  const std::string state = status["state"].Str();
  if (!state.empty()) return fmt::format("is {}: {}", state, workers);
  if (head["status"].AsString() == "True") return fmt::format("has its head, {}", workers);
  const std::string why = head["message"].Str(head["reason"].AsString());
  return fmt::format("waits for its head, {}{}{}", workers, why.empty() ? "" : ": ", why);
}

std::string SentenceForRayJob(const json::Value& job) {
  const json::Value& status = job["status"];
  std::string text = fmt::format("is {}", RayStateOf(job));
  if (status.Has("jobStatus")) text += fmt::format(", Ray says {}", status["jobStatus"].AsString());
  if (IsRayOver(job) && !status["message"].AsString().empty())
    text += fmt::format(": {}", status["message"].AsString());
  return text;
}

std::string SentenceForService(const json::Value& service) {
  const int64_t pods = service["status"]["numServeEndpoints"].AsInt();
  std::string text = pods > 0 ? fmt::format("serves from {} pod{}", pods, pods == 1 ? "" : "s")
                              : "does not serve yet";
  for (const char* role : {"activeServiceStatus", "pendingServiceStatus"}) {
    for (const auto& [name, application] :
         service["status"][role]["applicationStatuses"].members()) {
      text += fmt::format("; {} is {}", name, application["status"].AsString());
      if (const std::string why = application["message"].Str(); !why.empty()) text += ": " + why;
    }
  }
  return text;
}

}  // namespace

bool IsRayKind(std::string_view kind) {
  return kind == "RayCluster" || kind == "RayJob" || kind == "RayService";
}

std::string RayClusterOf(const json::Value& object) {
  const std::string_view kind = object["kind"].AsString();
  if (kind == "RayCluster") return object["metadata"]["name"].Str();
  const json::Value& status = object["status"];
  if (kind == "RayJob") return status["rayClusterName"].Str();
  return status["activeServiceStatus"]["rayClusterName"].Str(
      status["pendingServiceStatus"]["rayClusterName"].AsString());
}

std::string RayStateOf(const json::Value& object) {
  for (const char* member : {"state", "jobDeploymentStatus", "serviceStatus"}) {
    if (const std::string state = object["status"][member].Str(); !state.empty()) return state;
  }
  return object["status"].empty() ? "New" : "Starting";
}

bool IsRayOver(const json::Value& object) {
  const std::string state = object["status"]["jobDeploymentStatus"].Str();
  return state == "Complete" || state == "Failed" || state == "ValidationFailed";
}

std::string SentenceForRay(const json::Value& object) {
  const std::string_view kind = object["kind"].AsString();
  if (kind == "RayCluster") return SentenceForCluster(object);
  return kind == "RayJob" ? SentenceForRayJob(object) : SentenceForService(object);
}

}  // namespace muster::cli
