// src/apiserver/recent_trees.h
//
// RecentTrees: the trees of what was written last. An object is read again right after it was
// written, by the scheduler that binds it, the informers of this process and the answer to its
// writer; for those few its bytes need not be parsed.
//
// Life cycle: a member of the Core.
// Thread:     the loop thread.
// Invariants: Of() is what DecodeStored() makes of the entry's bytes, whether it was kept or not;
//             at most kRecentTrees are kept, none of more than kMaxRecentTreeBytes in the store.

#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "json/value.h"
#include "schema/kind.h"
#include "store/store.h"

namespace muster::apiserver {

inline constexpr size_t kRecentTrees = 512;
inline constexpr size_t kMaxRecentTreeBytes = 16 * 1024;

class RecentTrees {
 public:
  // `object` is what `entry` was encoded from.
  void Remember(const store::Entry& entry, const json::Value& object);
  json::Value Of(const schema::Kind& kind, const store::Entry& entry);

 private:
  struct Slot {
    std::shared_ptr<const std::string> bytes;  // these very bytes, not only equal ones
    json::Value tree;
    bool stored = true;  // else as it was written: put into its stored form when it is asked for
  };

  Slot& SlotOf(const store::Entry& entry);

  std::vector<Slot> slots_ = std::vector<Slot>(kRecentTrees);
};

}  // namespace muster::apiserver
