#include "apiserver/watch/shared_event.h"

#include "apiserver/errors.h"
#include "apiserver/protobuf_answer.h"
#include "apiserver/stored_object.h"
#include "base/check.h"
#include "json/write.h"

namespace muster::apiserver {
namespace {

constexpr std::string_view kInitialEventsEnd = "k8s.io/initial-events-end";

std::string_view NameOf(EventType type) {
  switch (type) {
    case EventType::kAdded:
      return "ADDED";
    case EventType::kModified:
      return "MODIFIED";
    case EventType::kDeleted:
      return "DELETED";
  }
  return "";
}

// The last state of an object, as of `revision`: a client that sees it leave its selection goes on
// from there.
store::EntryPtr AtRevision(const store::Entry& entry, store::Revision revision) {
  auto copy = std::make_shared<store::Entry>(entry);
  copy->mod_revision = revision;
  std::string value = *entry.value;
  std::string text = fmt::format("\"{}\"", revision);
  text.resize(store::kRevisionSlotBytes, ' ');
  if (entry.revision_slot != store::kNoRevisionSlot) {
    value.replace(entry.revision_slot, store::kRevisionSlotBytes, text);
  }
  copy->value = std::make_shared<const std::string>(std::move(value));
  return copy;
}

std::string TreeFrame(const AnswerFormat& format, std::string_view type,
                      const json::Value& object) {
  if (format.encoding == Encoding::kProtobuf) {
    const Result<std::string> bytes = EncodeProtobufTree(object);
    CHECK_MSG(bytes.has_value(), "what the server itself says has no message");
    return ProtobufFrame(type, *bytes);
  }
  return json::Write(json::Obj({{"type", type}, {"object", object}})) + "\n";
}

}  // namespace

std::string EncodeFrame(EventType type, const AnswerFormat& format, const store::Entry& entry,
                        Time now) {
  std::string out;
  if (format.encoding == Encoding::kProtobuf) {
    const Status written = AppendObject(out, format, entry, now);
    return written.ok() ? ProtobufFrame(NameOf(type), out) : EncodeErrorFrame(format, written);
  }
  out.reserve(entry.value->size() + 128);
  out += "{\"type\":\"";
  out += NameOf(type);
  out += "\",\"object\":";
  (void)AppendObject(out, format, entry, now);  // text never fails
  out += "}\n";
  return out;
}

std::string EncodeBookmark(const AnswerFormat& format, store::Revision revision,
                           bool initial_events_end) {
  json::Value metadata =
      json::Obj({{"resourceVersion", std::to_string(revision)}, {"creationTimestamp", nullptr}});
  if (initial_events_end) {
    metadata = metadata.SetPath({"annotations", kInitialEventsEnd}, "true");
  }
  json::Value object =
      json::Obj({{"kind", format.kind->kind}, {"apiVersion", format.kind->GroupVersion()}});
  if (format.form == AnswerForm::kPartialMetadata) {
    object = json::Obj(
        {{"kind", "PartialObjectMetadata"}, {"apiVersion", "meta.k8s.io/" + format.meta_version}});
  } else if (format.form == AnswerForm::kTable) {
    // The row's object carries the revision; the table itself has no cells to show.
    const json::Value partial = json::Obj({{"kind", "PartialObjectMetadata"},
                                           {"apiVersion", "meta.k8s.io/" + format.meta_version},
                                           {"metadata", metadata}});
    object = json::Obj(
        {{"kind", "Table"},
         {"apiVersion", "meta.k8s.io/" + format.meta_version},
         {"columnDefinitions", json::List()},
         {"rows", json::List({json::Obj({{"cells", json::List()}, {"object", partial}})})}});
    metadata = json::Obj({{"resourceVersion", std::to_string(revision)}});
  }
  object = object.Set("metadata", metadata);
  return TreeFrame(format, "BOOKMARK", object);
}

std::string EncodeErrorFrame(const AnswerFormat& format, const Status& status) {
  return TreeFrame(format, "ERROR", StatusObject(status));
}

SharedEvent::SharedEvent(store::WatchEvent event, Time now, RecentTrees& trees)
    : event_(std::move(event)), now_(now), trees_(trees) {}

std::optional<EventType> SharedEvent::TypeFor(const Selection& selection) const {
  if (!event_.entry->key.starts_with(selection.prefix())) return std::nullopt;
  const bool deleted = event_.type == store::WatchEvent::Type::kDelete;
  const bool was_in = event_.previous != nullptr && selection.Matches(*event_.previous);
  const bool is_in = !deleted && selection.Matches(*event_.entry);
  if (is_in) return was_in ? EventType::kModified : EventType::kAdded;
  return was_in ? std::optional(EventType::kDeleted) : std::nullopt;
}

store::EntryPtr SharedEvent::Shown(EventType type) const {
  const bool leaves = type == EventType::kDeleted && event_.type == store::WatchEvent::Type::kPut;
  return leaves ? AtRevision(*event_.previous, event_.revision) : event_.entry;
}

FramePtr SharedEvent::FrameFor(const Selection& selection, const AnswerFormat& format) {
  const std::optional<EventType> type = TypeFor(selection);
  return type ? Encode(*type, format) : nullptr;
}

json::Value SharedEvent::ValueFor(const Selection& selection, const AnswerFormat& format) {
  const std::optional<EventType> type = TypeFor(selection);
  if (!type) return {};
  return json::Obj({{"type", NameOf(*type)}, {"object", trees_.Of(*format.kind, *Shown(*type))}});
}

FramePtr SharedEvent::Encode(EventType type, const AnswerFormat& format) {
  for (const Encoded& one : encoded_) {
    if (one.type == type && one.format.Same(format)) return one.frame;
  }
  auto frame = std::make_shared<const std::string>(EncodeFrame(type, format, *Shown(type), now_));
  encoded_.push_back({type, format, frame});
  return frame;
}

FramePtr EventBatch::FrameFor(store::Revision after, const Selection& selection,
                              const AnswerFormat& format) {
  std::vector<FramePtr> frames;
  for (const SharedEventPtr& event : events_) {
    if (event->revision() <= after) continue;
    if (FramePtr frame = event->FrameFor(selection, format)) frames.push_back(std::move(frame));
  }
  if (frames.size() < 2) return frames.empty() ? nullptr : frames.front();
  FramePtr& joined = joined_[frames];
  if (joined == nullptr) {
    std::string bytes;
    for (const FramePtr& frame : frames) bytes += *frame;
    joined = std::make_shared<const std::string>(std::move(bytes));
  }
  return joined;
}

}  // namespace muster::apiserver
