// src/apiserver/watch/watcher.h
//
// Watcher: one client's watch. First it may send the objects that exist (in slices, never faster
// than the client reads), then it passes on frames as events come.
//
// Life cycle: made by the watch handler and given to an EventHub, which drops it once it is closed.
// Thread:     the loop thread.
// Invariants: frames go out in revision order; what arrives during the first part waits behind it;
//             a client that lets more than kMaxWatchBacklogBytes pile up (less, where there are
//             many watches: WatchBudget) is cut off with 410; what waits for it is dropped at once.

#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "apiserver/answer.h"
#include "apiserver/call.h"
#include "apiserver/selection.h"
#include "apiserver/watch/shared_event.h"
#include "loop/loop.h"
#include "store/store.h"

namespace muster::apiserver {

inline constexpr size_t kMaxWatchBacklogBytes = 8 * 1024 * 1024;  // unread bytes of one watch
// Of all watches together; each has its share, but no less than kMinWatchBacklogBytes (a burst of
// one commit must pass).
inline constexpr size_t kMaxAllWatchBacklogBytes = 512 * 1024 * 1024;
inline constexpr size_t kMinWatchBacklogBytes = 2 * 1024 * 1024;
// More than this unread: the first part waits, and looks again after kInitialRetry.
inline constexpr size_t kInitialBacklogBytes = 1024 * 1024;
inline constexpr Duration kInitialRetry = milliseconds(5);
inline constexpr size_t kInitialSliceObjects = 100;  // of the first part, per loop task
// The same in protobuf, which is made of a tree: 25 objects take about half a millisecond.
inline constexpr size_t kInitialProtobufSliceObjects = 25;

struct WatchSpec {
  SelectionPtr selection;
  AnswerFormat format;
  store::Revision after = 0;  // events with a greater revision are wanted
  bool bookmarks = false;
  bool initial_events_end = false;       // a bookmark closes the first part
  std::vector<store::EntryPtr> initial;  // candidates for the first part; consistent at `after`
  Duration timeout{};
};

// How many watches there are.
struct WatchBudget {
  size_t watchers = 0;
  size_t BacklogOfEach() const;  // bytes
};

class Watcher : public std::enable_shared_from_this<Watcher> {
 public:
  // REQUIRES: `budget` outlives the watcher.
  Watcher(Loop& loop, net::ResponseWriterPtr writer, WatchBudget& budget, WatchSpec spec,
          Task on_close);
  ~Watcher();

  // The head of the answer is out already; sends the first part and arms the time-out.
  void Start();
  void Offer(SharedEvent& event);
  void Offer(EventBatch& batch);
  // Everything up to `revision` has been offered.
  void Bookmark(store::Revision revision);
  // Ends the stream; with a status, an ERROR frame comes first.
  void Close(const Status& status = Status::Ok());

  bool closed() const { return closed_; }
  // Its client is in this process and takes trees. REQUIRES: not closed.
  bool SendsValues() const;
  const WatchSpec& spec() const { return spec_; }

 private:
  void PumpInitial();
  void FinishInitial();
  void Send(FramePtr frame);
  void SendValue(SharedEvent& event);
  void Cut();
  void Finish();

  Loop& loop_;
  net::ResponseWriterPtr writer_;  // null once closed
  WatchBudget& budget_;
  WatchSpec spec_;
  Task on_close_;
  TimerId timeout_ = 0;
  size_t next_initial_ = 0;
  bool initial_done_ = false;
  bool closed_ = false;
  std::deque<FramePtr> waiting_;  // frames that came during the first part
  size_t waiting_bytes_ = 0;
};
using WatcherPtr = std::shared_ptr<Watcher>;

}  // namespace muster::apiserver
