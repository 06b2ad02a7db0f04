// src/controllers/cronjob/time_zone.h
//
// TimeZone: what the clocks of a place show more than UTC, and until when. It follows the rule that
// the place has today (schema/time_zones.h); libc knows one zone at a time, by an environment
// variable that threads share, and the tzdb of C++20 is not in our oldest compiler.
//
// Life cycle: an immutable value.
// Thread:     any.

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "base/time.h"

namespace muster::controllers {

class TimeZone {
 public:
  TimeZone() = default;  // UTC
  // By its name in the tz database; "" is UTC. NotFound: "unknown time zone Mars/Base".
  static Result<TimeZone> Find(std::string_view name);
  // By a POSIX rule: "EST5EDT,M3.2.0,M11.1.0"; BadRequest if it is none.
  static Result<TimeZone> Parse(std::string_view rule);

  struct Period {
    seconds offset{0};
    std::optional<Time> until;  // when another offset holds; none: never
  };
  Period At(Time time) const;

 private:
  struct YearlyChange {
    enum class Day : uint8_t { kJulian, kZeroBased, kWeekday } kind = Day::kWeekday;
    int day = 0, week = 0, month = 0;
    int64_t time = 0;  // seconds of the local day, may be negative or beyond it
    // Seconds since 1970 on local clocks.
    int64_t InYear(int year) const;
  };
  class RuleReader;

  int64_t standard_ = 0;
  std::optional<int64_t> summer_;
  YearlyChange to_summer_, to_standard_;
};

}  // namespace muster::controllers
