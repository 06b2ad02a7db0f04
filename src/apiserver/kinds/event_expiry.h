// src/apiserver/kinds/event_expiry.h
//
// EventExpiry: Events live for an hour after they were last written.
//
// Life cycle: a member of the server; Start() once.
// Thread:     the loop thread.
// Invariants: one timer, armed only while events exist. An hour is sixty of its periods, whatever
//             the clock is set to meanwhile.

#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "base/time.h"
#include "loop/loop.h"
#include "store/store.h"

namespace muster::apiserver {

inline constexpr Duration kEventLifetime = hours(1);
inline constexpr Duration kEventExpiryPeriod = minutes(1);  // events go up to this much late
inline constexpr size_t kEventsExpiredPerTask = 500;

class EventExpiry {
 public:
  EventExpiry(Loop& loop, store::Store& store) : loop_(loop), store_(store) {}
  ~EventExpiry();

  // Events that are in the store already count from now.
  void Start();

 private:
  struct Due {
    uint64_t period;
    std::string key;
    store::Revision revision;  // a later write of the event has its own entry
  };
  void Add(std::string key, store::Revision revision);
  void Arm(Duration delay);
  void Expire();

  Loop& loop_;
  store::Store& store_;
  std::deque<Due> due_;  // by period
  uint64_t period_ = 0;
  bool behind_ = false;  // a period had more than one task may delete
  store::Store::WatchId watch_ = 0;
  TimerId timer_ = 0;
};

}  // namespace muster::apiserver
