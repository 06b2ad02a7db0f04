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
  using OnEvents = Function<void(const std::vector<WatchEvent>&)>;

  struct Watcher {
    Store::WatchId id = 0;
    std::string prefix;
    Revision position = 0;  // told everything up to here (or did not want it)
    bool live = false;
    bool cancelled = false;
    OnEvents on_events;
  };
  using WatcherPtr = std::shared_ptr<Watcher>;

  WatcherPtr Add(std::string prefix, Revision after, OnEvents on_events);
  void Cancel(Store::WatchId id);
  // REQUIRES: the watcher was told everything up to the last Publish().
  void GoLive(const WatcherPtr& watcher);
  // Tells the live watchers. `events` in revision order.
  void Publish(const std::vector<WatchEvent>& events);

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
