// tests/simulation/crash_point.h
//
// CrashPoint: counts the writes of one part of the system and kills it right before or right after
// the k-th. Leases and events do not count: they come by the clock, and nothing follows from them.
//
// Thread: the simulation's.

#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace muster::simulation {

struct CrashPoint {
  enum class When : uint8_t { kNever, kBefore, kAfter };

  When when = When::kNever;
  int64_t at = 0;              // the k-th, from 1
  int64_t seen = 0;            // so far
  bool dead = false;           // the part is about to be destroyed: it reaches nobody any more
  std::function<void()> kill;  // called once, from inside the part: destroy it in a later task

  // Another write is about to be made. What becomes of it?
  When Next() {
    if (++seen != at || when == When::kNever) return When::kNever;
    dead = true;
    return when;
  }

  static bool Counts(std::string_view path) {
    return path.find("/leases") == path.npos && path.find("/events") == path.npos;
  }
};

}  // namespace muster::simulation
