#include "scheduler/group_status.h"

#include <utility>

#include "schema/conditions.h"

namespace muster::scheduler {

namespace {

std::string_view PhaseOf(int64_t min_member, const GangCount& count) {
  if (count.members < min_member || count.members == 0)
    return count.running > 0 ? "Unknown" : "Pending";
  if (count.occupied < min_member) return count.running > 0 ? "Unknown" : "Inqueue";
  const bool over = count.succeeded >= min_member && count.running == 0 && count.pending == 0;
  return over ? "Completed" : "Running";
}

json::Value Condition(std::string_view type, bool holds, std::string_view reason,
                      std::string_view message, Time now) {
  json::Value out = json::Obj({{"type", type},
                               {"status", holds ? "True" : "False"},
                               {"lastTransitionTime", FormatTime(now)},
                               {"reason", reason}});
  return message.empty() ? out : out.Set("message", message);
}

// Puts `condition` in place of the one of its type; an equal one keeps its time.
json::Value WithCondition(const json::Value& conditions, const json::Value& condition, Time now) {
  for (size_t i = 0; i < conditions.size(); ++i) {
    const json::Value& present = conditions.At(i);
    if (present["type"] != condition["type"]) continue;
    const json::Value next = condition.Set(
        "lastTransitionTime", schema::TransitionTime(present, condition["status"].AsString(), now));
    return next == present.Remove("transitionID") ? conditions : conditions.SetAt(i, next);
  }
  return conditions.Append(condition);
}

}  // namespace

json::Value NextGroupStatus(const json::Value& object, const GangCount& count,
                            const GangVerdict& verdict, Time now) {
  const std::string_view phase = PhaseOf(object.Path({"spec", "minMember"}).AsInt(1), count);
  json::Value conditions = object.Path({"status", "conditions"});
  if (verdict.waits) {
    conditions =
        WithCondition(conditions,
                      Condition("Unschedulable", true,
                                verdict.lacks_members ? "NotEnoughTasks" : "NotEnoughResources",
                                verdict.message, now),
                      now);
  } else if (phase == "Running") {
    if (!schema::FindCondition(conditions, "Unschedulable").IsNull()) {
      conditions =
          WithCondition(conditions, Condition("Unschedulable", false, "Scheduled", "", now), now);
    }
    conditions = WithCondition(
        conditions,
        Condition("Scheduled", true, "tasks in gang are ready to be scheduled", "", now), now);
  }
  json::Value status = object["status"].Set("phase", phase);
  if (!conditions.empty()) status = status.Set("conditions", conditions);
  return status.Set("running", count.running)
      .Set("succeeded", count.succeeded)
      .Set("failed", count.failed);
}

}  // namespace muster::scheduler
