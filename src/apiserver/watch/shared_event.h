// src/apiserver/watch/shared_event.h
//
// SharedEvent: one change of one object on its way to many watchers. Each form in which a client
// wants it is encoded at most once; the bytes are shared. EventBatch: several of them that go out
// together.
//
// Life cycle: made by the EventHub for each event of the store, dropped when no watcher and no ring
//             needs it; a batch lives while it is given to the watchers.
// Thread:     the loop thread.

#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apiserver/answer.h"
#include "apiserver/recent_trees.h"
#include "apiserver/selection.h"
#include "base/time.h"
#include "json/value.h"
#include "store/store.h"

namespace muster::apiserver {

using FramePtr = std::shared_ptr<const std::string>;

enum class EventType : uint8_t { kAdded, kModified, kDeleted };

// {"type":"ADDED","object":...} and a line feed; in protobuf the size in four bytes and a
// WatchEvent.
std::string EncodeFrame(EventType type, const AnswerFormat& format, const store::Entry& entry,
                        Time now);
// A bookmark at `revision`; `initial_events_end` adds the annotation that ends a WatchList's first
// part.
std::string EncodeBookmark(const AnswerFormat& format, store::Revision revision,
                           bool initial_events_end);
std::string EncodeErrorFrame(const AnswerFormat& format, const Status& status);

class SharedEvent {
 public:
  // REQUIRES: `trees` outlives the event.
  SharedEvent(store::WatchEvent event, Time now, RecentTrees& trees);

  store::Revision revision() const { return event_.revision; }
  // The frame for a watcher of this selection and format: nullptr when the change does not concern
  // it. An object that enters a selection is ADDED, one that leaves it DELETED.
  FramePtr FrameFor(const Selection& selection, const AnswerFormat& format);
  // The same as a tree, {type, object}, for a watcher in this process; null instead of nullptr.
  json::Value ValueFor(const Selection& selection, const AnswerFormat& format);
  size_t bytes() const { return event_.entry->value->size(); }  // about the size of a frame

 private:
  struct Encoded {
    EventType type;
    AnswerFormat format;
    FramePtr frame;
  };
  std::optional<EventType> TypeFor(const Selection& selection) const;
  // What a watcher is shown in an event of this type.
  store::EntryPtr Shown(EventType type) const;
  FramePtr Encode(EventType type, const AnswerFormat& format);

  store::WatchEvent event_;
  Time now_;
  RecentTrees& trees_;
  std::vector<Encoded> encoded_;
};
using SharedEventPtr = std::shared_ptr<SharedEvent>;

class EventBatch {
 public:
  // REQUIRES: in revision order.
  explicit EventBatch(std::vector<SharedEventPtr> events) : events_(std::move(events)) {}

  // The frames of the events after `after`, in one piece; nullptr when none concerns the watcher.
  FramePtr FrameFor(store::Revision after, const Selection& selection, const AnswerFormat& format);
  const std::vector<SharedEventPtr>& events() const { return events_; }

 private:
  std::vector<SharedEventPtr> events_;
  std::map<std::vector<FramePtr>, FramePtr> joined_;  // most watchers want the same frames
};

}  // namespace muster::apiserver
