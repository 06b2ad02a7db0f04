#include "apiserver/watch/watcher.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

namespace muster::apiserver {

size_t WatchBudget::BacklogOfEach() const {
  return std::clamp(kMaxAllWatchBacklogBytes / std::max<size_t>(watchers, 1), kMinWatchBacklogBytes,
                    kMaxWatchBacklogBytes);
}

Watcher::Watcher(Loop& loop, net::ResponseWriterPtr writer, WatchBudget& budget, WatchSpec spec,
                 Task on_close)
    : loop_(loop),
      writer_(std::move(writer)),
      budget_(budget),
      spec_(std::move(spec)),
      on_close_(std::move(on_close)) {
  ++budget_.watchers;
}

Watcher::~Watcher() {
  loop_.Cancel(timeout_);
  --budget_.watchers;
}

void Watcher::Start() {
  const std::weak_ptr<Watcher> weak = weak_from_this();
  writer_->OnPeerGone([weak] {
    if (const WatcherPtr self = weak.lock()) self->Close();
  });
  timeout_ = loop_.After(spec_.timeout, [weak] {
    if (const WatcherPtr self = weak.lock()) self->Close();
  });
  PumpInitial();
}

void Watcher::PumpInitial() {
  if (closed_) return;
  const std::weak_ptr<Watcher> weak = weak_from_this();
  const auto again = [weak] {
    if (const WatcherPtr self = weak.lock()) self->PumpInitial();
  };
  if (writer_->BufferedBytes() > kInitialBacklogBytes) {
    loop_.After(kInitialRetry, again);
    return;
  }
  std::string slice;
  const size_t objects = spec_.format.encoding == Encoding::kProtobuf ? kInitialProtobufSliceObjects
                                                                      : kInitialSliceObjects;
  const size_t end = std::min(spec_.initial.size(), next_initial_ + objects);
  for (; next_initial_ < end; ++next_initial_) {
    const store::Entry& entry = *spec_.initial[next_initial_];
    if (!spec_.selection->Matches(entry)) continue;
    slice += EncodeFrame(EventType::kAdded, spec_.format, entry, loop_.Now());
  }
  if (!slice.empty()) writer_->Write(std::make_shared<const std::string>(std::move(slice)));
  if (next_initial_ == spec_.initial.size()) {
    FinishInitial();
  } else {
    loop_.Post(again);
  }
}

void Watcher::FinishInitial() {
  spec_.initial.clear();
  spec_.initial.shrink_to_fit();
  if (spec_.initial_events_end) {
    writer_->Write(
        std::make_shared<const std::string>(EncodeBookmark(spec_.format, spec_.after, true)));
  }
  initial_done_ = true;
  for (FramePtr& frame : std::exchange(waiting_, {})) Send(std::move(frame));
}

void Watcher::Offer(SharedEvent& event) {
  if (closed_ || event.revision() <= spec_.after) return;
  if (initial_done_ && SendsValues()) return SendValue(event);
  if (FramePtr frame = event.FrameFor(*spec_.selection, spec_.format)) Send(std::move(frame));
}

void Watcher::Offer(EventBatch& batch) {
  if (closed_) return;
  if (initial_done_ && SendsValues()) {
    for (const SharedEventPtr& event : batch.events()) Offer(*event);
    return;
  }
  if (FramePtr frame = batch.FrameFor(spec_.after, *spec_.selection, spec_.format))
    Send(std::move(frame));
}

void Watcher::Bookmark(store::Revision revision) {
  if (closed_ || !spec_.bookmarks || !initial_done_) return;
  Send(std::make_shared<const std::string>(EncodeBookmark(spec_.format, revision, false)));
}

void Watcher::Send(FramePtr frame) {
  if (closed_) return;
  if (!initial_done_) {
    waiting_bytes_ += frame->size();
    waiting_.push_back(std::move(frame));
    if (waiting_bytes_ > budget_.BacklogOfEach()) Cut();
    return;
  }
  writer_->Write(std::move(frame));
  if (writer_->BufferedBytes() > budget_.BacklogOfEach()) Cut();
}

bool Watcher::SendsValues() const {
  return writer_->TakesValues() && spec_.format.form == AnswerForm::kObject &&
         spec_.format.encoding == Encoding::kJson;
}

void Watcher::SendValue(SharedEvent& event) {
  json::Value value = event.ValueFor(*spec_.selection, spec_.format);
  if (value.IsNull()) return;
  writer_->WriteValue(std::move(value), event.bytes());
  if (writer_->BufferedBytes() > budget_.BacklogOfEach()) Cut();
}

// The client is told to list again, and its connection ends.
void Watcher::Cut() {
  if (closed_) return;
  writer_->CutWith(std::make_shared<const std::string>(EncodeErrorFrame(
      spec_.format,
      Status(Reason::kExpired,
             fmt::format("too old resource version: this watch was read too slowly, more than {} "
                         "bytes waited for it; list again",
                         budget_.BacklogOfEach())))));
  Finish();
}

void Watcher::Close(const Status& status) {
  if (closed_) return;
  if (!status.ok()) {
    writer_->Write(std::make_shared<const std::string>(EncodeErrorFrame(spec_.format, status)));
  }
  writer_->End();
  Finish();
}

void Watcher::Finish() {
  closed_ = true;
  loop_.Cancel(timeout_);
  writer_ = nullptr;
  waiting_.clear();
  if (on_close_) std::exchange(on_close_, nullptr)();
}

}  // namespace muster::apiserver
