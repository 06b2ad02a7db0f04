#include "controllers/endpointslice/slice_writes.h"

#include <set>
#include <utility>

namespace muster::controllers {
namespace {

namespace resources = client::resources;

bool IsGoing(const json::Value& slice) { return slice["metadata"].Has("deletionTimestamp"); }

client::Target TargetOf(const client::ObjectKey& key) {
  return {resources::kEndpointSlices, key.ns, key.name, ""};
}

}  // namespace

void WriteSlices(const client::Informer& slices, std::vector<json::Value> wanted,
                 const std::vector<client::ObjectKey>& owned, const MergeSlice& merge,
                 client::Reconciled& out) {
  std::set<client::ObjectKey> kept;
  for (json::Value& slice : wanted) {
    const client::ObjectKey key = client::KeyOf(slice);
    kept.insert(key);
    const json::Value* have = slices.Find(key);
    if (have == nullptr) {
      out.Create(TargetOf(key), std::move(slice));
      continue;
    }
    if (IsGoing(*have)) continue;
    json::Value merged = merge(*have, slice);
    if (merged != *have) out.Update(TargetOf(key), std::move(merged));
  }
  for (const client::ObjectKey& key : owned) {
    if (!kept.contains(key) && !IsGoing(*slices.Find(key))) out.Delete(TargetOf(key));
  }
}

json::Value MergeEndpoints(const json::Value& have, const json::Value& want) {
  return have.Set("endpoints", want["endpoints"])
      .Set("ports", want["ports"])
      .SetPath({"metadata", "labels"}, want["metadata"]["labels"]);
}

}  // namespace muster::controllers
