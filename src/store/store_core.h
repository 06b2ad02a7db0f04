// src/store/store_core.h
//
// StoreCore: the Store over any backend. State, preconditions, history and watches live here, on
// the loop thread; the committer makes them last.
//
// Life cycle: Open() loads the backend's state; destruction commits what is pending, without
//             calling anybody back. Not to be destroyed from one of its callbacks.
// Thread:     the loop thread.
// Invariants: those of store.h, and:
//             - a read-only store has no pending writes; one whose disk was full tries now and then
//               whether it has room again;
//             - `pending_` holds the revisions after committed_ without gaps, oldest first;
//             - latest_ has exactly the keys that pending_ changes.

#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "loop/loop.h"
#include "store/backend.h"
#include "store/committer.h"
#include "store/history.h"
#include "store/key_index.h"
#include "store/store.h"
#include "store/watch_hub.h"

namespace muster::store {

// A store whose disk was full looks after this long, then twice as long, whether there is room.
inline constexpr Duration kMinRecoveryDelay = seconds(1);
inline constexpr Duration kMaxRecoveryDelay = seconds(30);

using CommitterFactory = std::function<std::unique_ptr<Committer>(Loop& loop, Backend& backend,
                                                                  Committer::OnCommit on_commit)>;

class StoreCore final : public Store {
 public:
  struct Options {
    Decorator decorator;  // may be empty
    CommitterFactory committer = MakeLoopCommitter;
    size_t max_history_bytes = kMaxHistoryBytes;
    Revision max_uncompacted_revisions = kMaxUncompactedRevisions;
    size_t max_uncompacted_bytes = kMaxUncompactedBytes;
  };

  static Result<std::unique_ptr<StoreCore>> Open(Loop& loop, std::unique_ptr<Backend> backend,
                                                 Options options);
  ~StoreCore() override;

  Revision CommittedRevision() const override { return committed_; }
  Revision CompactedRevision() const override { return compacted_; }
  Status Health() const override { return health_; }

  Result<Revision> Write(Put put, Done done) override;
  Result<Revision> Delete(std::string_view key, std::optional<Revision> expected,
                          Durability durability, Done done) override;
  EntryPtr Get(std::string_view key) const override { return index_.Find(key); }
  EntryPtr GetLatest(std::string_view key) const override;
  Result<RangeResult> Range(std::string_view prefix, std::string_view after, size_t limit,
                            Revision revision) const override;
  bool InMemory(Revision revision) const override;
  PastReader Past(Revision revision) const override;
  using Store::Watch;
  Result<WatchId> Watch(std::string prefix, Revision after, OnEvents on_events,
                        OnEnd on_end) override;
  void CancelWatch(WatchId watch) override { hub_.Cancel(watch); }
  Status Compact(Revision revision) override;

 private:
  struct Pending {
    WatchEvent event;
    Done done;
    size_t bytes = 0;
  };
  struct Latest {
    Revision revision = 0;
    EntryPtr entry;  // nullptr: deleted
  };

  // A piece of the log from the backend, and what became of its changes once somebody wanted them.
  struct LogPiece {
    Revision after = 0;
    Revision last = 0;
    std::vector<LogChange> changes;
    std::vector<std::optional<WatchEvent>> events;
  };

  StoreCore(Loop& loop, std::unique_ptr<Backend> backend, Options options);
  Status Load();

  Status CheckWritable(size_t key_bytes, size_t value_bytes) const;
  static Status CheckExpected(std::string_view key, const EntryPtr& found,
                              std::optional<Revision> expected);
  Revision Submit(WatchEvent event, Durability durability, Done done);

  void OnCommit(Result<Revision> last);
  void Publish(Revision last);
  void TurnReadOnly(const Status& reason);
  void FailPending();
  void ScheduleRecovery();

  WatchEvent MakeLoggedEvent(LogChange change) const;
  RangeResult RangeNow(std::string_view prefix, std::string_view after, size_t limit) const;
  RangeResult RangeInHistory(std::string_view prefix, std::string_view after, size_t limit,
                             Revision revision) const;

  void ScheduleCatchUp(WatchHub::WatcherPtr watcher);
  void CatchUp(const WatchHub::WatcherPtr& watcher);
  void TellPastLater();
  void TellPast();
  Status ReadPiece(Revision after);
  void TellPiece(const WatchHub::WatcherPtr& watcher);
  void TrimHistory();
  void MoveCompacted(Revision revision);
  void ApplyCompaction();

  Loop& loop_;
  const std::shared_ptr<Backend> backend_;  // shared with readers of the past on the pool
  const Options options_;

  Status health_;
  Duration recovery_delay_{};  // before the next try; 0 while the store is healthy
  Revision committed_ = 0;
  Revision assigned_ = 0;   // the last revision given to a write
  Revision compacted_ = 0;  // what readers are told
  Revision compaction_applied_ = 0;
  size_t uncompacted_bytes_ = 0;  // written after compacted_, about
  KeyIndex index_;
  History history_{0};
  WatchHub hub_;
  LogPiece piece_;             // while somebody is told what only the backend has
  bool telling_past_ = false;  // TellPast() is to come

  std::deque<Pending> pending_;
  size_t pending_bytes_ = 0;
  std::unordered_map<std::string, Latest> latest_;

  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
  std::unique_ptr<Committer>
      committer_;  // last: its destruction writes what is queued, to a backend that is there
};

}  // namespace muster::store
