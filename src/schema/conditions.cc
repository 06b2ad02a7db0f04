#include "schema/conditions.h"

namespace muster::schema {

const json::Value& FindCondition(const json::Value& conditions, std::string_view type) {
  static const json::Value kAbsent;
  for (const json::Value& condition : conditions.items()) {
    if (condition["type"].AsString() == type) return condition;
  }
  return kAbsent;
}

bool ConditionHolds(const json::Value& conditions, std::string_view type) {
  return FindCondition(conditions, type)["status"].AsString() == "True";
}

json::Value TransitionTime(const json::Value& before, std::string_view status, Time now) {
  const json::Value& since = before["lastTransitionTime"];
  if (before["status"].AsString() == status && since.IsString()) return since;
  return FormatTime(now);
}

}  // namespace muster::schema
