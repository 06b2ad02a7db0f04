// src/apiserver/watch/event_hub.h
//
// EventHub: the events of one kind, taken from the store once and given to all watchers of that
// kind. A ring of the latest events lets a client that lists and then watches join without a
// replay; who comes from further back gets a replay of its own from the store.
//
// Where many watch, events that come shortly after one another go out together: handing something
// to a thousand connections takes a millisecond, whatever its size.
//
// Life cycle: made at the first watch of a kind, lives as long as its EventHubs.
// Thread:     the loop thread.
// Invariants: all watchers of a kind see its events in the same order; a bookmark says a revision
//             only after every event up to it was offered.

#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "apiserver/recent_trees.h"
#include "apiserver/watch/watcher.h"
#include "base/status.h"
#include "loop/loop.h"
#include "store/store.h"

namespace muster::apiserver {

inline constexpr size_t kHubRingEvents = 1024;
inline constexpr size_t kHubRingBytes =
    4 * 1024 * 1024;  // of object bytes that the ring keeps alive
inline constexpr Duration kBookmarkPeriod = minutes(1);
// The pause between two batches of events: this much for each watcher, at most kMaxBatchDelay, and
// none at all where it would be less than kMinBatchDelay.
inline constexpr Duration kBatchDelayPerWatcher = std::chrono::microseconds(10);
inline constexpr Duration kMinBatchDelay = milliseconds(1);
inline constexpr Duration kMaxBatchDelay = milliseconds(10);

class EventHub {
 public:
  EventHub(Loop& loop, store::Store& store, RecentTrees& trees, std::string prefix);
  ~EventHub();

  // Expired when the start lies before what the store remembers.
  Status Add(const WatcherPtr& watcher);
  void CloseAll(const Status& status);
  // A watcher has closed: it is forgotten in a later loop task.
  void SweepLater();
  size_t watchers() const { return count_; }
  const std::string& prefix() const { return prefix_; }
  bool followed_here() const { return followed_here_; }

 private:
  // A watcher with its own subscription at the store, because it started before the ring.
  struct Replay {
    WatcherPtr watcher;
    store::Store::WatchId watch = 0;
  };

  using Watchers = std::vector<WatcherPtr>;

  using Pending = std::vector<std::pair<SharedEventPtr, store::WatchEvent>>;

  void OnEvents(const std::vector<store::WatchEvent>& events);
  Duration BatchDelay() const;
  // Gives what is pending to all whom it may concern.
  void Flush();
  // Offers an event to the watchers of one value.
  void OfferRouted(SharedEvent& event, const store::WatchEvent& raw);
  Watchers& ListFor(const Watcher& watcher);
  template <class Visit>
  void ForEachLive(Visit visit) const;
  void Remember(SharedEventPtr event, size_t bytes);
  Status AddReplay(const WatcherPtr& watcher);
  void Sweep();
  void ArmBookmarks();

  Loop& loop_;
  store::Store& store_;
  RecentTrees& trees_;
  std::string prefix_;
  store::Store::WatchId watch_ = 0;
  store::Revision ring_start_ = 0;  // the ring holds all events after this
  std::deque<std::pair<SharedEventPtr, size_t>> ring_;
  size_t ring_bytes_ = 0;
  // Live watchers: those who want one value of one field, by field and value; all others.
  std::map<size_t, std::unordered_map<std::string, Watchers>> routed_;
  Watchers others_;
  std::vector<Replay> replays_;
  Pending pending_;  // in the ring already, not yet offered
  Time next_flush_{};
  TimerId flush_timer_ = 0;
  size_t count_ = 0;
  bool followed_here_ = false;  // by a watcher that takes values
  bool sweep_pending_ = false;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
  TimerId bookmark_timer_ = 0;
};

// The hubs of all kinds.
class EventHubs {
 public:
  EventHubs(Loop& loop, store::Store& store, RecentTrees& trees)
      : loop_(loop), store_(store), trees_(trees) {}
  EventHub& For(const std::string& prefix);
  // Ends the watches of one kind (its CRD went away); all of them for "".
  void Close(const std::string& prefix, const Status& status = Status::Ok());
  size_t watchers() const;
  // A part of this process watches, or has watched, the collection that `key` belongs to.
  bool FollowedHere(std::string_view key) const;
  WatchBudget& budget() { return budget_; }

 private:
  Loop& loop_;
  store::Store& store_;
  RecentTrees& trees_;
  WatchBudget budget_;  // outlives the watchers
  std::map<std::string, std::unique_ptr<EventHub>, std::less<>> hubs_;
};

}  // namespace muster::apiserver
