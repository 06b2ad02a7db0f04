#include "store/history.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace muster::store {

namespace {

// Shared pointers' control blocks and allocator overhead, about.
constexpr size_t kEntryOverheadBytes = sizeof(Entry) + 96;

// What the event alone keeps alive: the value that it superseded, and for a deletion its own copy
// of the last state.
size_t Cost(const WatchEvent& event) {
  size_t bytes = sizeof(WatchEvent);
  if (event.previous)
    bytes += kEntryOverheadBytes + event.previous->key.size() + event.previous->value->size();
  if (event.type == WatchEvent::Type::kDelete) {
    bytes += kEntryOverheadBytes + event.entry->key.size();
    if (event.entry->value != event.previous->value) bytes += event.entry->value->size();
  }
  return bytes;
}

}  // namespace

void History::Append(WatchEvent event) {
  CHECK(event.revision == Last() + 1);
  bytes_ += Cost(event);
  events_.push_back(std::move(event));
}

void History::DropThrough(Revision revision) {
  while (!events_.empty() && floor_ < revision) {
    bytes_ -= Cost(events_.front());
    events_.pop_front();
    ++floor_;
  }
  floor_ = std::max(floor_, revision);
}

Revision History::FloorWithin(size_t limit) const {
  size_t bytes = bytes_;
  Revision floor = floor_;
  for (size_t i = 0; i < events_.size() && bytes > limit; ++i, ++floor) bytes -= Cost(events_[i]);
  return floor;
}

std::vector<WatchEvent> History::Select(std::string_view prefix, Revision after,
                                        Revision last) const {
  CHECK(after >= floor_ && last <= Last());
  std::vector<WatchEvent> selected;
  for (Revision revision = after + 1; revision <= last; ++revision) {
    if (At(revision).entry->key.starts_with(prefix)) selected.push_back(At(revision));
  }
  return selected;
}

History::Overlay History::Undo(std::string_view prefix, Revision revision) const {
  CHECK(revision >= floor_);
  Overlay overlay;
  for (Revision r = revision + 1; r <= Last(); ++r) {
    const WatchEvent& event = At(r);
    // Only the first change of a key after `revision` matters: emplace keeps it.
    if (event.entry->key.starts_with(prefix)) overlay.emplace(event.entry->key, event.previous);
  }
  return overlay;
}

}  // namespace muster::store
