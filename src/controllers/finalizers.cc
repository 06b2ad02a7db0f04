#include "controllers/finalizers.h"

#include <algorithm>
#include <utility>

namespace muster::controllers {
namespace {

json::Value FinalizersPatch(const json::Value& seen, json::Value finalizers) {
  const json::Value& metadata = seen["metadata"];
  return json::Obj({{"metadata", json::Obj({{"uid", metadata["uid"]},
                                            {"resourceVersion", metadata["resourceVersion"]},
                                            {"finalizers", std::move(finalizers)}})}});
}

}  // namespace

bool HasFinalizer(const json::Value& object, std::string_view finalizer) {
  return std::ranges::any_of(
      object["metadata"]["finalizers"].items(),
      [finalizer](const json::Value& one) { return one.AsString() == finalizer; });
}

json::Value AddFinalizerPatch(const json::Value& seen, std::string_view finalizer) {
  return FinalizersPatch(seen, seen["metadata"]["finalizers"].Append(finalizer));
}

json::Value RemoveFinalizerPatch(const json::Value& seen, std::string_view finalizer) {
  json::Array kept;
  for (const json::Value& one : seen["metadata"]["finalizers"].items()) {
    if (one.AsString() != finalizer) kept.push_back(one);
  }
  return FinalizersPatch(seen, json::Value(std::move(kept)));
}

bool KeepUntilFree(const client::Target& target, const json::Value& object,
                   std::string_view finalizer, bool is_free, client::Reconciled& out) {
  const bool has = HasFinalizer(object, finalizer);
  const bool goes = object["metadata"].Has("deletionTimestamp");
  if (has == goes && (is_free || !goes)) {
    out.PatchMerge(target, goes ? RemoveFinalizerPatch(object, finalizer)
                                : AddFinalizerPatch(object, finalizer));
    return true;
  }
  return false;
}

}  // namespace muster::controllers
