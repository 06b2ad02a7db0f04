#include "training/status.h"

#include "schema/conditions.h"

namespace muster::training {
namespace {

bool Removes(std::string_view added, std::string_view old) {
  return (added == kRunning && old == kRestarting) || (added == kRestarting && old == kRunning);
}

bool EndsRunning(const Condition& added) {
  return added.holds &&
         (added.type == kSucceeded || added.type == kFailed || added.type == kSuspended);
}

}  // namespace

bool HasCondition(const json::Value& status, std::string_view type) {
  return schema::ConditionHolds(status["conditions"], type);
}

bool IsFinished(const json::Value& status) {
  return HasCondition(status, kSucceeded) || HasCondition(status, kFailed);
}

json::Value WithCondition(const json::Value& status, const Condition& condition, Time now) {
  if (IsFinished(status)) return status;
  const std::string_view truth = condition.holds ? "True" : "False";
  const std::string time = FormatTime(now);
  const json::Value& before = schema::FindCondition(status["conditions"], condition.type);
  if (before["status"].AsString() == truth && before["reason"].AsString() == condition.reason)
    return status;
  const json::Value transition = schema::TransitionTime(before, truth, now);
  json::Array conditions;
  for (const json::Value& old : status["conditions"].items()) {
    const std::string_view type = old["type"].AsString();
    if (type == condition.type || (condition.holds && Removes(condition.type, type))) continue;
    if (type == kRunning && EndsRunning(condition) && old["status"].AsString() == "True") {
      conditions.push_back(
          old.Set("status", "False").Set("lastUpdateTime", time).Set("lastTransitionTime", time));
      continue;
    }
    conditions.push_back(old);
  }
  conditions.push_back(json::Obj({{"type", condition.type},
                                  {"status", truth},
                                  {"reason", condition.reason},
                                  {"message", condition.message},
                                  {"lastUpdateTime", time},
                                  {"lastTransitionTime", transition}}));
  return status.Set("conditions", json::Value(std::move(conditions)));
}

json::Value ReplicaStatus(const ReplicaCounts& counts, const std::string& selector) {
  json::Object members;
  if (counts.active > 0) members.emplace_back("active", counts.active);
  if (counts.succeeded > 0) members.emplace_back("succeeded", counts.succeeded);
  if (counts.failed > 0) members.emplace_back("failed", counts.failed);
  members.emplace_back("selector", selector);
  return json::Value(std::move(members));
}

}  // namespace muster::training
