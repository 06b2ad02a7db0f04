#include "controllers/job/job_conditions.h"

#include "schema/conditions.h"

namespace muster::controllers {

bool JobConditions::Holds(std::string_view type) const {
  return schema::ConditionHolds(list_, type);
}

std::optional<JobEnd> JobConditions::DecidedEnd() const {
  for (const char* type : {"SuccessCriteriaMet", "FailureTarget"}) {
    const json::Value& condition = schema::FindCondition(list_, type);
    if (condition["status"].AsString() == "True")
      return JobEnd{type, condition["reason"].Str(), condition["message"].Str()};
  }
  return std::nullopt;
}

bool JobConditions::Ensure(std::string_view type, std::string_view status, std::string_view reason,
                           std::string_view message) {
  const json::Value condition = json::Obj({{"type", type},
                                           {"status", status},
                                           {"lastProbeTime", FormatTime(now_)},
                                           {"lastTransitionTime", FormatTime(now_)},
                                           {"reason", reason},
                                           {"message", message}});
  for (size_t i = 0; i < list_.size(); ++i) {
    const json::Value& known = list_.At(i);
    if (known["type"].AsString() != type) continue;
    if (known["status"].AsString() == status && known["reason"].AsString() == reason &&
        known["message"].AsString() == message)
      return false;
    list_ = list_.SetAt(i, condition);
    return true;
  }
  if (status == "False") return false;
  list_ = list_.Append(condition);
  return true;
}

json::Value JobConditions::PutInto(json::Value status) const {
  return list_.empty() ? status.Remove("conditions") : std::move(status).Set("conditions", list_);
}

}  // namespace muster::controllers
