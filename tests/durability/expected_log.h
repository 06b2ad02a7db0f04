// tests/durability/expected_log.h
//
// ExpectedLog: what was asked of a store, revision by revision, and what it promised: the simplest
// thing that can be right.
//
// Thread: one.

#pragma once

#include <map>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "store/store.h"

namespace muster::durability {

struct Change {
  std::string key;
  std::string value;
  bool deleted = false;
  bool durable = true;
  bool acknowledged = false;

  // As store::Describe() tells the event.
  std::string Text(store::Revision revision) const {
    return fmt::format("{} {} {} {}", deleted ? "delete" : "put", key, revision, value);
  }
};

using State = std::map<std::string, std::pair<store::Revision, std::string>>;

inline State StateOf(const store::RangeResult& range) {
  State state;
  for (const store::EntryPtr& entry : range.entries)
    state[entry->key] = {entry->mod_revision, *entry->value};
  return state;
}

struct ExpectedLog {
  State base_state;
  store::Revision base = 0;
  std::map<store::Revision, Change> changes;  // after `base`, without gaps

  State At(store::Revision revision) const {
    State state = base_state;
    for (const auto& [number, change] : changes) {
      if (number > revision) break;
      if (change.deleted) {
        state.erase(change.key);
      } else {
        state[change.key] = {number, change.value};
      }
    }
    return state;
  }

  // Everything up to here must outlive a power cut. `shown`: what a reader or watcher has seen.
  store::Revision Promised(store::Revision shown) const {
    store::Revision promised = base;
    for (const auto& [revision, change] : changes) {
      if (change.durable && (change.acknowledged || revision <= shown)) promised = revision;
    }
    return promised;
  }
  // The same for a process that ends while the machine stays up.
  store::Revision Acknowledged() const {
    store::Revision last = base;
    for (const auto& [revision, change] : changes) {
      if (change.acknowledged) last = revision;
    }
    return last;
  }
};

}  // namespace muster::durability
