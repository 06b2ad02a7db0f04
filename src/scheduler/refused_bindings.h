// src/scheduler/refused_bindings.h
//
// RefusedBindings: what the scheduler owes a unit whose binding the server refused. The unit rests
// for a while, so that it does not stand in the way of others; room that was made for it by
// evicting pods is kept during the first rests, since most refusals pass; and a unit that was
// refused after room had been made for it evicts nobody again for a time that doubles, so that one
// that is refused for ever does not evict one pod after another.
//
// Life cycle: lives with its scheduler; a restart forgets all.
// Thread:     the loop thread.

#pragma once

#include <map>
#include <set>
#include <string>

#include "base/time.h"
#include "scheduler/pending.h"

namespace muster::scheduler {

// Rests during which the room that was made for the unit is kept: 100 + 200 + 400 ms.
inline constexpr int kMaxRestsWithRoom = 3;
inline constexpr Duration kFirstEvictionPause = minutes(1);
inline constexpr Duration kMaxEvictionPause = minutes(10);

class RefusedBindings {
 public:
  struct Pause {
    Time rests_until{};
    Time evicts_after{};  // the epoch: it may evict
    std::string refusal;  // the server's words
  };

  // The unit gave its places back. Called for each of its pods; the first call of a rest counts.
  // `room_was_made`: pods were evicted for it, or their end was waited for.
  const Pause& Refused(const UnitKey& unit, bool room_was_made, const std::string& refusal,
                       Time now);
  void Bound(const UnitKey& unit) { units_.erase(unit); }

  // The units that rest; and those whose room is kept meanwhile.
  struct Resting {
    std::set<UnitKey> without_room, with_room;
  };
  Resting RestingAt(Time now);
  // Null if it may evict.
  const Pause* EvictionPause(const UnitKey& unit, Time now) const;

 private:
  struct Entry {
    Pause pause;
    int refusals = 0;       // in a row
    int wasted_rooms = 0;   // of these, after room had been made
    bool has_room = false;  // some was made, for this rest or one before
  };
  std::map<UnitKey, Entry> units_;
};

}  // namespace muster::scheduler
