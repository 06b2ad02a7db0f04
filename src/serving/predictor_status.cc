#include "serving/predictor_status.h"

#include <algorithm>

#include <fmt/core.h>

#include "schema/conditions.h"
#include "serving/hosts.h"
#include "serving/inference_service.h"
#include "serving/model_storage.h"
#include "serving/serving_pass.h"

namespace muster::serving {
namespace {

using json::Value;

constexpr char kReady[] = "Ready";
constexpr int64_t kFirstFailureShown = 1;

// The sum: False as soon as one is, True only if all are.
ServingCondition ReadyOf(const std::vector<ServingCondition>& list) {
  const ServingCondition* worst = nullptr;
  for (const ServingCondition& one : list) {
    if (!one.counts || one.status == "True") continue;
    if (worst == nullptr || (worst->status != "False" && one.status == "False")) worst = &one;
  }
  if (worst == nullptr) return {kReady, "True", "", ""};
  return {kReady, worst->status, worst->reason, worst->message};
}

Value Entry(const Value& before, const ServingCondition& condition, Time now) {
  Value entry = json::Obj(
      {{"type", condition.type},
       {"status", condition.status},
       {"lastTransitionTime", schema::TransitionTime(schema::FindCondition(before, condition.type),
                                                     condition.status, now)}});
  if (!condition.reason.empty()) entry = std::move(entry).Set("reason", condition.reason);
  if (!condition.message.empty()) entry = std::move(entry).Set("message", condition.message);
  return entry;
}

const Value& ServerStatus(const Value& pod) {
  static const Value kNone;
  for (const Value& container : pod["status"]["containerStatuses"].items()) {
    if (container["name"].AsString() == kServerContainer) return container;
  }
  return kNone;
}

// The end of a container that did not end well; null otherwise.
const Value& BadEnd(const Value& container) {
  static const Value kNone;
  for (const char* state : {"state", "lastState"}) {
    const Value& end = container[state]["terminated"];
    if (!end.IsNull() && end["exitCode"].AsInt(kFirstFailureShown) != 0) return end;
  }
  return kNone;
}

bool CannotStart(std::string_view reason) {
  return reason == "ImagePullBackOff" || reason == "ErrImagePull" || reason == "InvalidImageName" ||
         reason == "CreateContainerConfigError" || reason == "CreateContainerError" ||
         reason == "RunContainerError";
}

// The model is not where it should be: the node says so of its volume, while the pod waits.
bool FindsNoModel(const Value& waiting) {
  return waiting["message"].AsString().contains(fmt::format("volume \"{}\"", kModelVolume));
}

}  // namespace

Value ConditionsOf(const Value& before, std::vector<ServingCondition> list, Time now) {
  if (std::ranges::find(list, kReady, &ServingCondition::type) == list.end())
    list.push_back(ReadyOf(list));
  std::ranges::sort(list, {}, &ServingCondition::type);
  json::Array conditions;
  for (const ServingCondition& condition : list)
    conditions.push_back(Entry(before, condition, now));
  return Value(std::move(conditions));
}

ServingCondition HostTaken(std::string_view name, std::string_view ns, std::string_view owner) {
  return {"HostTaken", "True", "OlderHasIt",
          fmt::format("{} leads to {}, which is older; this one is reached as {}",
                      SharedHostOf(name, ns), owner, OwnHostOf(name, ns)),
          false};
}

RevisionState::RevisionState(const Value& deployment) {
  exists = !deployment.IsNull();
  const Value& metadata = deployment["metadata"];
  const Value& status = deployment["status"];
  revision = metadata["annotations"][kRevisionAnnotation].Str();
  hash = metadata["annotations"][kHashAnnotation].Str();
  wanted = deployment["spec"]["replicas"].AsInt(1);
  ready = status["readyReplicas"].AsInt();
  total = status["replicas"].AsInt();
  const int64_t updated = status["updatedReplicas"].AsInt();
  rolled_out = exists && status["observedGeneration"].AsInt() >= metadata["generation"].AsInt(1) &&
               updated == wanted && total == updated &&
               status["availableReplicas"].AsInt() == updated;
  const Value& progressing = schema::FindCondition(status["conditions"], "Progressing");
  reason = progressing["reason"].Str();
  message = progressing["message"].Str();
  failed = progressing["status"].AsString() == "False";
  const Value& no_pods = schema::FindCondition(status["conditions"], "ReplicaFailure");
  if (no_pods["status"].AsString() != "True") return;
  reason = no_pods["reason"].Str();
  message = no_pods["message"].Str();
  failed = true;
}

std::string WhyNoNode(const std::vector<Value>& pods, std::string_view app_label) {
  for (const Value& pod : pods) {
    if (pod["metadata"]["labels"]["app"].AsString() != app_label ||
        pod["metadata"].Has("deletionTimestamp"))
      continue;
    const Value& placed = schema::FindCondition(pod["status"]["conditions"], "PodScheduled");
    if (placed["status"].AsString() != "False" || placed["message"].AsString().empty()) continue;
    return fmt::format("pod {}: {}", pod["metadata"]["name"].AsString(),
                       placed["message"].AsString());
  }
  return "";
}

Value FailureOf(const std::vector<Value>& pods, std::string_view app_label,
                std::string_view revision) {
  for (const Value& pod : pods) {
    if (pod["metadata"]["labels"]["app"].AsString() != app_label ||
        pod["metadata"].Has("deletionTimestamp"))
      continue;
    const Value& server = ServerStatus(pod);
    if (server["ready"].AsBool()) continue;
    const Value& waiting = server["state"]["waiting"];
    const Value& end = BadEnd(server);
    const bool cannot_start = CannotStart(waiting["reason"].AsString());
    const bool finds_none = FindsNoModel(waiting);
    if (end.IsNull() && !cannot_start && !finds_none) continue;
    Value info = json::Obj({{"location", pod["metadata"]["name"]},
                            {"reason", cannot_start ? "RuntimeUnhealthy" : "ModelLoadFailed"},
                            {"modelRevisionName", revision}});
    const bool waits = cannot_start || finds_none;
    const Value& message = waits ? waiting["message"] : end["message"];
    info = info.Set("message",
                    message.IsNull() ? (waits ? waiting["reason"] : end["reason"]) : message);
    if (!waits) {
      info = info.Set("exitCode", end["exitCode"]);
      if (end.Has("finishedAt")) info = info.Set("time", end["finishedAt"]);
    }
    return info;
  }
  return {};
}

}  // namespace muster::serving
