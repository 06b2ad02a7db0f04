#include "scheduler/refused_bindings.h"

#include <algorithm>

#include "scheduler/binder.h"

namespace muster::scheduler {

namespace {

Duration EvictionPauseAfter(int wasted_rooms) {
  Duration pause = kFirstEvictionPause;
  for (int i = 1; i < wasted_rooms && pause < kMaxEvictionPause; ++i) pause *= 2;
  return std::min(pause, kMaxEvictionPause);
}

}  // namespace

const RefusedBindings::Pause& RefusedBindings::Refused(const UnitKey& unit, bool room_was_made,
                                                       const std::string& refusal, Time now) {
  Entry& entry = units_[unit];
  Pause& pause = entry.pause;
  if (pause.rests_until > now) return pause;  // another pod of it said so
  pause.rests_until = now + BindBackoff(++entry.refusals);
  pause.refusal = refusal;
  entry.has_room |= room_was_made;
  // While it may not evict, no new room can have been made.
  if (room_was_made && pause.evicts_after <= now)
    pause.evicts_after = now + EvictionPauseAfter(++entry.wasted_rooms);
  return pause;
}

RefusedBindings::Resting RefusedBindings::RestingAt(Time now) {
  for (auto& [unit, entry] : units_) {
    // Further away than any pause: the clock was set back.
    Pause& pause = entry.pause;
    if (pause.rests_until > now + kMaxBindBackoff) pause.rests_until = now;
    if (pause.evicts_after > now + kMaxEvictionPause) pause.evicts_after = now;
  }
  std::erase_if(units_, [&](const auto& item) {
    const Entry& entry = item.second;
    return entry.pause.rests_until + kMaxBindBackoff < now &&
           (entry.wasted_rooms == 0 || entry.pause.evicts_after + kMaxEvictionPause < now);
  });
  Resting out;
  for (const auto& [unit, entry] : units_) {
    if (entry.pause.rests_until <= now) continue;
    const bool keeps_room = entry.has_room && entry.refusals <= kMaxRestsWithRoom;
    (keeps_room ? out.with_room : out.without_room).insert(unit);
  }
  return out;
}

const RefusedBindings::Pause* RefusedBindings::EvictionPause(const UnitKey& unit, Time now) const {
  const auto found = units_.find(unit);
  return found != units_.end() && found->second.pause.evicts_after > now ? &found->second.pause
                                                                         : nullptr;
}

}  // namespace muster::scheduler
