// src/cost/history.h
//
// Where the history is kept: CostLedger objects, written once and never changed.
//
//   b-20261130-14-...   a batch: what went in a few seconds
//   h-20261130-14       all batches of that hour, which are deleted then
//   d-20261130          all hours of that day, likewise
//
// While both are there the longer one counts: so it does not matter where a compaction was
// interrupted, and a row is written at most three times. `seen` says until when accounts were kept.
//
// Thread: any (pure).

#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "client/api_client.h"
#include "cost/ledger.h"
#include "json/value.h"

namespace muster::cost {

inline const client::Resource kLedgers{"cost.muster.dev", "v1alpha1", "costledgers"};
inline constexpr std::string_view kSeen = "seen";
// Labels of batches and hours, for those who put them together: "20261130-14", "20261130".
inline constexpr std::string_view kHourLabel = "cost.muster.dev/hour";
inline constexpr std::string_view kDayLabel = "cost.muster.dev/day";

std::string HourOf(Time time);  // "20261130-14", UTC
std::string DayOf(Time time);   // "20261130"

struct LedgerName {
  enum class Level : uint8_t { kBatch, kHour, kDay };
  Level level = Level::kBatch;
  std::string hour;  // "" of a day
  std::string day;
};
// nullopt: of no part of the history.
std::optional<LedgerName> ParseLedgerName(std::string_view name);
std::string NameOf(LedgerName::Level level, std::string_view time, std::string_view rest = "");

// An object to create. `time`: an hour, or a day of Level::kDay.
json::Value LedgerObject(LedgerName::Level level, const std::string& time, std::string_view rest,
                         const Ledger& ledger);

// All of them together: `objects` are those of a List, in any order. What another one covers is
// left out.
Ledger HistoryOf(const json::Array& objects);

// The times in which a node that is there was what it is now, and what it was before, of which
// `history` knows; the last one ends `now`.
std::vector<NodeRow> NodeRowsOf(const NodeFacts& node, const Ledger& history, Time now);

}  // namespace muster::cost
