#include "scheduler/group_status.h"

#include <utility>

#include "schema/conditions.h"

namespace muster::scheduler {

namespace {

json::Value WithCounts(const json::Value& status, const GangCount& count) {
  return status.Set("running", count.running)
      .Set("succeeded", count.succeeded)
      .Set("failed", count.failed);
}

std::string_view PhaseOf(int64_t min_member, const GangCount& count) {
  bool exist = count.members >= min_member && count.members > 0;
  bool placed = count.occupied >= min_member;
  for (const TaskCount& task : count.tasks) {
    exist &= task.members >= task.min_member;
    placed &= task.Needed() == 0;
  }
  exist &= count.sub_groups.CanBeMet();
  placed &= count.sub_groups.AreMet();
  if (!exist) return count.running > 0 ? "Unknown" : "Pending";
  if (!placed) return count.running > 0 ? "Unknown" : "Inqueue";
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

// As the controller of scheduler-plugins goes through them: the later ones overrule.
std::string_view PluginsPhaseOf(int64_t min_member, const GangCount& count) {
  if (count.succeeded >= min_member && count.succeeded > 0) return "Finished";
  const int64_t exist = count.running + count.succeeded + count.failed + count.pending;
  if (exist < min_member || exist == 0) return "Pending";
  if (count.failed > 0 && count.failed + count.running + count.succeeded >= min_member)
    return "Failed";
  return count.running + count.succeeded >= min_member ? "Running" : "Scheduling";
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
    const std::string_view reason = verdict.lacks_task        ? "NotEnoughPodsOfTask"
                                    : verdict.lacks_sub_group ? "NotEnoughPodsOfSubGroup"
                                    : verdict.lacks_members   ? "NotEnoughTasks"
                                                              : "NotEnoughResources";
    conditions = WithCondition(conditions,
                               Condition("Unschedulable", true, reason, verdict.message, now), now);
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
  return WithCounts(status, count);
}

json::Value NextPluginsStatus(const json::Value& object, const GangCount& count,
                              const std::string& owners, Time now) {
  const std::string_view phase = PluginsPhaseOf(object.Path({"spec", "minMember"}).AsInt(0), count);
  json::Value status = object["status"].Set("phase", phase);
  if (!owners.empty()) status = status.Set("occupiedBy", owners);
  if (phase == "Scheduling" && status["scheduleStartTime"].IsNull())
    status = status.Set("scheduleStartTime", FormatTime(now));
  return WithCounts(status, count);
}

}  // namespace muster::scheduler
