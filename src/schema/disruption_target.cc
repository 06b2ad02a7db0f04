#include "schema/disruption_target.h"

#include "schema/conditions.h"

namespace muster::schema {

json::Value DisruptionTarget(const json::Value& pod, std::string_view reason,
                             std::string_view message, Time now) {
  const json::Value& before = FindCondition(pod["status"]["conditions"], kDisruptionTarget);
  return json::Obj({{"type", kDisruptionTarget},
                    {"status", "True"},
                    {"lastTransitionTime", TransitionTime(before, "True", now)},
                    {"reason", reason},
                    {"message", message}});
}

}  // namespace muster::schema
