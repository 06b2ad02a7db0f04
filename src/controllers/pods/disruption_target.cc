#include "controllers/pods/disruption_target.h"

#include <utility>

#include "schema/conditions.h"

namespace muster::controllers {
namespace {

constexpr std::string_view kDisruptionTarget = "DisruptionTarget";

}  // namespace

json::Value StatusPatchOf(const json::Value& pod, json::Object status) {
  return json::Obj({{"metadata", json::Obj({{"uid", pod["metadata"]["uid"]}})},
                    {"status", json::Value(std::move(status))}});
}

json::Value DisruptionTarget(const json::Value& pod, std::string_view reason,
                             std::string_view message, Time now) {
  const json::Value& before = schema::FindCondition(pod["status"]["conditions"], kDisruptionTarget);
  return json::Obj({{"type", kDisruptionTarget},
                    {"status", "True"},
                    {"lastTransitionTime", schema::TransitionTime(before, "True", now)},
                    {"reason", reason},
                    {"message", message}});
}

client::Target StatusTargetOf(const json::Value& pod) {
  const client::ObjectKey key = client::KeyOf(pod);
  return {client::resources::kPods, key.ns, key.name, "status"};
}

}  // namespace muster::controllers
