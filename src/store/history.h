// src/store/history.h
//
// History: the latest events of the log in memory, without gaps, for watches that start in the past
// and reads of an old revision.
//
// Thread:     one owner.
// Invariants: the events are those of the revisions Floor() + 1 .. Last(), in order. bytes() counts
//             what only the history keeps alive (superseded values), not the current state.

#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <string_view>
#include <vector>

#include "store/store.h"

namespace muster::store {

class History {
 public:
  explicit History(Revision floor) : floor_(floor) {}

  // REQUIRES: event.revision == Last() + 1.
  void Append(WatchEvent event);
  // Drops the events up to `revision`.
  void DropThrough(Revision revision);
  // The smallest floor that keeps bytes() within `limit`, without dropping anything yet.
  Revision FloorWithin(size_t limit) const;

  Revision Floor() const { return floor_; }
  Revision Last() const { return floor_ + static_cast<Revision>(events_.size()); }
  size_t bytes() const { return bytes_; }

  // Events of `prefix` with after < revision <= last. REQUIRES: Floor() <= after, last <= Last().
  std::vector<WatchEvent> Select(std::string_view prefix, Revision after, Revision last) const;

  // What has to be put over the present state of `prefix` to get that of `revision`: the former
  // entry of every key that changed since, nullptr where there was none. REQUIRES: Floor() <=
  // revision.
  using Overlay = std::map<std::string_view, EntryPtr>;
  Overlay Undo(std::string_view prefix, Revision revision) const;

 private:
  const WatchEvent& At(Revision revision) const {
    return events_[static_cast<size_t>(revision - floor_ - 1)];
  }

  Revision floor_;
  std::deque<WatchEvent> events_;
  size_t bytes_ = 0;
};

}  // namespace muster::store
