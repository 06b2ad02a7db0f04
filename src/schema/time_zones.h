// src/schema/time_zones.h
//
// The names of the tz database and the rule that each follows today, built in: a machine need not
// have the database, and all machines know the same names. tools/schema/make_time_zones.py writes
// the table.
//
// Thread:     any (pure functions).
// Invariants: rules of the past are not known; nor are those that no POSIX rule expresses (the
//             month of Ramadan in Morocco).

#pragma once

#include <span>
#include <string_view>

namespace muster::schema {

// "CET-1CEST,M3.5.0,M10.5.0/3" for "Europe/Berlin": what POSIX says of the TZ variable. "" for a
// name that does not exist.
std::string_view PosixTimeZone(std::string_view name);

struct TimeZoneRule {
  std::string_view rule;
  std::string_view names;  // separated by spaces
};
extern const std::span<const TimeZoneRule> kTimeZoneRules;

}  // namespace muster::schema
