#include "controllers/pods/status_patch.h"

#include <utility>

namespace muster::controllers {

json::Value StatusPatchOf(const json::Value& pod, json::Object status) {
  return json::Obj({{"metadata", json::Obj({{"uid", pod["metadata"]["uid"]}})},
                    {"status", json::Value(std::move(status))}});
}

client::Target StatusTargetOf(const json::Value& pod) {
  const client::ObjectKey key = client::KeyOf(pod);
  return {client::resources::kPods, key.ns, key.name, "status"};
}

}  // namespace muster::controllers
