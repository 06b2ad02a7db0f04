#include "controllers/deployment/deployment_status.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "schema/conditions.h"

namespace muster::controllers {
namespace {

constexpr char kAvailable[] = "Available";
constexpr char kProgressing[] = "Progressing";
constexpr char kReplicaFailure[] = "ReplicaFailure";
constexpr char kTimedOut[] = "ProgressDeadlineExceeded";
constexpr char kPaused[] = "DeploymentPaused";
constexpr char kNewIsAvailable[] = "NewReplicaSetAvailable";

json::Value WithoutCondition(const json::Value& status, std::string_view type) {
  if (schema::FindCondition(status["conditions"], type).IsNull()) return status;
  json::Array rest;
  for (const json::Value& condition : status["conditions"].items()) {
    if (condition["type"].AsString() != type) rest.push_back(condition);
  }
  return rest.empty() ? status.Remove("conditions")
                      : status.Set("conditions", json::Value(std::move(rest)));
}

json::Value WithCount(json::Value status, const char* name, int64_t count) {
  return count == 0 ? status.Remove(name) : std::move(status).Set(name, count);
}

bool HasDeadline(const DeploymentSpec& spec) { return spec.progress_deadline_seconds >= 0; }

// 'ReplicaSet "web-1"', or 'Deployment "web"' while there is none.
std::string Subject(const json::Value& deployment, const ReplicaSetView* newest) {
  return newest == nullptr
             ? fmt::format("Deployment \"{}\"", deployment["metadata"]["name"].AsString())
             : fmt::format("ReplicaSet \"{}\"", newest->name());
}

bool HasProgressed(const json::Value& before, const json::Value& after) {
  const auto old_ones = [](const json::Value& status) {
    return status["replicas"].AsInt() - status["updatedReplicas"].AsInt();
  };
  const auto grew = [&](const char* name) { return after[name].AsInt() > before[name].AsInt(); };
  return grew("updatedReplicas") || old_ones(after) < old_ones(before) || grew("readyReplicas") ||
         grew("availableReplicas");
}

std::optional<Time> DeadlineOf(const DeploymentSpec& spec, const json::Value& progressing) {
  const std::optional<Time> since = ParseTime(progressing["lastUpdateTime"].AsString());
  if (!since.has_value()) return std::nullopt;
  return *since + seconds(spec.progress_deadline_seconds);
}

bool HasTimedOut(const DeploymentSpec& spec, const json::Value& progressing, Time now) {
  if (progressing.IsNull() || progressing["reason"].AsString() == kNewIsAvailable) return false;
  if (progressing["reason"].AsString() == kTimedOut) return true;
  const std::optional<Time> deadline = DeadlineOf(spec, progressing);
  return deadline.has_value() && *deadline < now;
}

// The newest one's failure first.
const json::Value& FailureOf(const std::vector<ReplicaSetView*>& all,
                             const ReplicaSetView* newest) {
  static const json::Value kNone;
  const json::Value* found = &kNone;
  for (const ReplicaSetView* view : all) {
    const json::Value& failure =
        schema::FindCondition(view->object["status"]["conditions"], kReplicaFailure);
    if (!failure.IsNull() && (found->IsNull() || view == newest)) found = &failure;
  }
  return *found;
}

}  // namespace

json::Value WithDeploymentCondition(const json::Value& status, const DeploymentCondition& condition,
                                    Time now) {
  const json::Value before = schema::FindCondition(status["conditions"], condition.type);
  if (before["status"].AsString() == condition.status &&
      before["reason"].AsString() == condition.reason)
    return status;
  json::Array conditions;
  for (const json::Value& other : status["conditions"].items()) {
    if (other["type"].AsString() != condition.type) conditions.push_back(other);
  }
  conditions.push_back(
      json::Obj({{"type", condition.type},
                 {"status", condition.status},
                 {"lastUpdateTime", FormatTime(now)},
                 {"lastTransitionTime", schema::TransitionTime(before, condition.status, now)},
                 {"reason", condition.reason},
                 {"message", condition.message}}));
  return status.Set("conditions", json::Value(std::move(conditions)));
}

json::Value CountReplicas(const json::Value& deployment, const DeploymentSpec& spec,
                          const json::Value& status, const std::vector<ReplicaSetView*>& all,
                          const ReplicaSetView* newest, Time now) {
  int64_t replicas = 0, ready = 0;
  for (const ReplicaSetView* view : all) {
    replicas += view->object["status"]["replicas"].AsInt();
    ready += view->object["status"]["readyReplicas"].AsInt();
  }
  const int64_t available = SumOfAvailable(all);
  json::Value out =
      WithCount(status, "observedGeneration", deployment["metadata"]["generation"].AsInt());
  out = WithCount(std::move(out), "replicas", replicas);
  out = WithCount(std::move(out), "updatedReplicas",
                  newest == nullptr ? 0 : newest->object["status"]["replicas"].AsInt());
  out = WithCount(std::move(out), "readyReplicas", ready);
  out = WithCount(std::move(out), "availableReplicas", available);
  out = WithCount(std::move(out), "unavailableReplicas",
                  std::max<int64_t>(SumOfReplicas(all) - available, 0));
  if (available >= spec.replicas - spec.max_unavailable) {
    return WithDeploymentCondition(
        out,
        {kAvailable, "True", "MinimumReplicasAvailable", "Deployment has minimum availability."},
        now);
  }
  return WithDeploymentCondition(out,
                                 {kAvailable, "False", "MinimumReplicasUnavailable",
                                  "Deployment does not have minimum availability."},
                                 now);
}

bool IsComplete(const DeploymentSpec& spec, const json::Value& deployment,
                const json::Value& status) {
  return status["updatedReplicas"].AsInt() == spec.replicas &&
         status["replicas"].AsInt() == spec.replicas &&
         status["availableReplicas"].AsInt() == spec.replicas &&
         status["observedGeneration"].AsInt() >= deployment["metadata"]["generation"].AsInt();
}

json::Value JudgeProgress(const json::Value& deployment, const DeploymentSpec& spec,
                          json::Value status, const std::vector<ReplicaSetView*>& all,
                          const ReplicaSetView* newest, Time now) {
  const json::Value before =
      schema::FindCondition(deployment["status"]["conditions"], kProgressing);
  const bool was_complete = status["replicas"].AsInt() == status["updatedReplicas"].AsInt() &&
                            before["reason"].AsString() == kNewIsAvailable;
  const std::string subject = Subject(deployment, newest);
  if (!HasDeadline(spec)) {
    status = WithoutCondition(status, kProgressing);
  } else if (!was_complete) {
    if (IsComplete(spec, deployment, status)) {
      status = WithDeploymentCondition(
          status,
          {kProgressing, "True", kNewIsAvailable, subject + " has successfully progressed."}, now);
    } else if (HasProgressed(deployment["status"], status)) {
      // Told anew each time: the deadline counts from the last step. Its status keeps its time.
      const json::Value transition = schema::TransitionTime(before, "True", now);
      status = WithDeploymentCondition(
          WithoutCondition(status, kProgressing),
          {kProgressing, "True", "ReplicaSetUpdated", subject + " is progressing."}, now);
      json::Array conditions = status["conditions"].items();
      conditions.back() = conditions.back().Set("lastTransitionTime", transition);
      status = status.Set("conditions", json::Value(std::move(conditions)));
    } else if (HasTimedOut(spec, schema::FindCondition(status["conditions"], kProgressing), now)) {
      status = WithDeploymentCondition(
          status, {kProgressing, "False", kTimedOut, subject + " has timed out progressing."}, now);
    }
  }
  const json::Value& failure = FailureOf(all, newest);
  if (failure.IsNull()) return WithoutCondition(status, kReplicaFailure);
  return WithDeploymentCondition(status,
                                 {kReplicaFailure, failure["status"].AsString(),
                                  failure["reason"].AsString(), failure["message"].Str()},
                                 now);
}

std::optional<Time> ProgressDue(const json::Value& deployment, const DeploymentSpec& spec,
                                const json::Value& status) {
  const json::Value& progressing = schema::FindCondition(status["conditions"], kProgressing);
  const std::string_view reason = progressing["reason"].AsString();
  if (!HasDeadline(spec) || progressing.IsNull() || reason == kTimedOut || reason == kPaused ||
      IsComplete(spec, deployment, status))
    return std::nullopt;
  const std::optional<Time> deadline = DeadlineOf(spec, progressing);
  if (!deadline.has_value()) return std::nullopt;
  return *deadline + seconds(1);
}

json::Value JudgePause(const DeploymentSpec& spec, const json::Value& status, Time now) {
  const json::Value& progressing = schema::FindCondition(status["conditions"], kProgressing);
  const std::string_view reason = progressing["reason"].AsString();
  if (!HasDeadline(spec) || reason == kTimedOut) return status;
  if (spec.paused && reason != kPaused) {
    return WithDeploymentCondition(status,
                                   {kProgressing, "Unknown", kPaused, "Deployment is paused"}, now);
  }
  if (!spec.paused && reason == kPaused) {
    return WithDeploymentCondition(
        status, {kProgressing, "Unknown", "DeploymentResumed", "Deployment is resumed"}, now);
  }
  return status;
}

}  // namespace muster::controllers
