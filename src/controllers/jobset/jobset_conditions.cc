#include "controllers/jobset/jobset_conditions.h"

#include "schema/conditions.h"

namespace muster::controllers {
namespace {

std::string_view OppositeOf(std::string_view type) {
  if (type == "StartupPolicyInProgress") return "StartupPolicyCompleted";
  if (type == "StartupPolicyCompleted") return "StartupPolicyInProgress";
  return {};
}

}  // namespace

bool JobSetConditions::Holds(std::string_view type) const {
  return schema::ConditionHolds(list_, type);
}

Time JobSetConditions::Since(std::string_view type) const {
  if (!Holds(type)) return now_;
  return ParseTime(schema::FindCondition(list_, type)["lastTransitionTime"].AsString())
      .value_or(now_);
}

bool JobSetConditions::Ensure(std::string_view type, bool holds, std::string_view reason,
                              std::string_view message) {
  if (Holds(type) == holds) return false;
  const std::string_view opposite = holds ? OppositeOf(type) : std::string_view();
  const json::Value condition = json::Obj({{"type", type},
                                           {"status", holds ? "True" : "False"},
                                           {"lastTransitionTime", FormatTime(now_)},
                                           {"reason", reason},
                                           {"message", message}});
  bool found = false;
  for (size_t i = 0; i < list_.size(); ++i) {
    const json::Value known = list_.At(i);
    if (known["type"].AsString() == type) {
      found = true;
      list_ = list_.SetAt(i, condition);
    } else if (known["type"].AsString() == opposite && known["status"].AsString() == "True") {
      list_ =
          list_.SetAt(i, known.Set("status", "False").Set("lastTransitionTime", FormatTime(now_)));
    }
  }
  if (!found) list_ = list_.Append(condition);
  return true;
}

json::Value JobSetConditions::PutInto(json::Value status) const {
  return list_.empty() ? status.Remove("conditions") : std::move(status).Set("conditions", list_);
}

}  // namespace muster::controllers
