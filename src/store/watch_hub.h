// src/store/watch_hub.h
//
// WatchHub: who watches which prefix, and how far each has been told.
//
// Life cycle: a watcher is added behind the present (lagging), told what it missed by the store,
//             and goes live.
// Thread:     one owner. Callbacks may add and cancel watchers, themselves included.
// Invariants: a live watcher has been told everything up to the last Publish().
// Cost:       Publish() compares each event once per distinct prefix, not per watcher.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "store/store.h"

namespace muster::store {

class WatchHub {
 public:
  struct Watcher {
    Store::WatchId id = 0;
    std::string prefix;
    Revision position = 0;  // told everything up to here (or did not want it)
    bool live = false;
    bool cancelled = false;
    Store::OnEvents on_events;
    Store::OnEnd on_end;  // may be empty
  };
  using WatcherPtr = std::shared_ptr<Watcher>;

  WatcherPtr Add(std::string prefix, Revision after, Store::OnEvents on_events,
                 Store::OnEnd on_end);
  void Cancel(Store::WatchId id);
  // Cancels it and says why.
  void End(const WatcherPtr& watcher, const Status& why);
  // REQUIRES: the watcher was told everything up to the last Publish().
  void GoLive(const WatcherPtr& watcher);
  // Tells the live watchers. `events` in revision order.
  void Publish(const std::vector<WatchEvent>& events);

  // Those that are not live and have not been told everything up to `position`.
  std::vector<WatcherPtr> LaggingBefore(Revision position) const;
  // Ends them.
  void EndLaggingBefore(Revision position, const Status& why);
  // The smallest position among those that are not live; `otherwise` if all are.
  Revision OldestLagging(Revision otherwise) const;
  size_t size() const { return watchers_.size(); }

 private:
  static void Tell(Watcher& watcher, const std::vector<WatchEvent>& events);

  Store::WatchId next_id_ = 1;
  std::unordered_map<Store::WatchId, WatcherPtr> watchers_;
  std::map<Store::WatchId, WatcherPtr> lagging_;
  std::map<std::string, std::vector<WatcherPtr>> live_by_prefix_;
};

}  // namespace muster::store
