#include "apiserver/recent_trees.h"

#include <utility>

#include "apiserver/stored_object.h"

namespace muster::apiserver {

RecentTrees::Slot& RecentTrees::SlotOf(const store::Entry& entry) {
  return slots_[static_cast<size_t>(entry.mod_revision) % slots_.size()];
}

void RecentTrees::Remember(const store::Entry& entry, const json::Value& object) {
  if (entry.value->size() > kMaxRecentTreeBytes) return;
  SlotOf(entry) = {entry.value, object, false};
}

json::Value RecentTrees::Of(const schema::Kind& kind, const store::Entry& entry) {
  Slot& slot = SlotOf(entry);
  // One object may be read as several versions of its kind.
  if (slot.bytes == entry.value && slot.tree["apiVersion"].AsString() == kind.GroupVersion()) {
    if (!slot.stored) slot.tree = StoredTree(kind, slot.tree, entry.mod_revision);
    slot.stored = true;
    return slot.tree;
  }
  json::Value tree = DecodeStored(kind, *entry.value);
  if (entry.value->size() <= kMaxRecentTreeBytes) slot = {entry.value, tree, true};
  return tree;
}

}  // namespace muster::apiserver
