#include "cost/history.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include <fmt/core.h>

namespace muster::cost {
namespace {

constexpr size_t kDayLength = 8, kHourLength = 11;

bool IsDay(std::string_view text) {
  return text.size() == kDayLength && std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isdigit(c) != 0;
         });
}

bool IsHour(std::string_view text) {
  return text.size() == kHourLength && IsDay(text.substr(0, kDayLength)) &&
         text[kDayLength] == '-' && std::isdigit(static_cast<unsigned char>(text[9])) != 0 &&
         std::isdigit(static_cast<unsigned char>(text[10])) != 0;
}

}  // namespace

std::string HourOf(Time time) {
  const std::string text = FormatTime(time);  // 2026-11-30T14:...
  return DayOf(time) + "-" + text.substr(11, 2);
}

std::string DayOf(Time time) {
  const std::string text = FormatTime(time);
  return text.substr(0, 4) + text.substr(5, 2) + text.substr(8, 2);
}

std::string NameOf(LedgerName::Level level, std::string_view time, std::string_view rest) {
  switch (level) {
    case LedgerName::Level::kBatch:
      return fmt::format("b-{}-{}", time, rest);
    case LedgerName::Level::kHour:
      return fmt::format("h-{}", time);
    case LedgerName::Level::kDay:
      break;
  }
  return fmt::format("d-{}", time);
}

std::optional<LedgerName> ParseLedgerName(std::string_view name) {
  if (name.size() < 2 || name[1] != '-') return std::nullopt;
  const std::string_view time = name.substr(2);
  LedgerName out;
  if (name[0] == 'd' && IsDay(time)) {
    out.level = LedgerName::Level::kDay;
    out.day = time;
    return out;
  }
  if (name[0] == 'h' && IsHour(time)) {
    out.level = LedgerName::Level::kHour;
  } else if (name[0] != 'b' || time.size() <= kHourLength + 1 || time[kHourLength] != '-' ||
             !IsHour(time.substr(0, kHourLength))) {
    return std::nullopt;
  }
  out.hour = time.substr(0, kHourLength);
  out.day = time.substr(0, kDayLength);
  return out;
}

json::Value LedgerObject(LedgerName::Level level, const std::string& time, std::string_view rest,
                         const Ledger& ledger) {
  const std::string day = time.substr(0, kDayLength);
  json::Value labels = json::Obj({{std::string(kDayLabel), day}});
  if (level != LedgerName::Level::kDay) labels = std::move(labels).Set(kHourLabel, time);
  return json::Obj({{"apiVersion", kLedgers.group + "/" + kLedgers.version},
                    {"kind", "CostLedger"},
                    {"metadata", json::Obj({{"name", NameOf(level, time, rest)},
                                            {"labels", std::move(labels)}})},
                    {"spec", SpecOf(ledger)}});
}

Ledger HistoryOf(const json::Array& objects) {
  std::set<std::string> whole_hours, whole_days;
  for (const json::Value& object : objects) {
    const auto name = ParseLedgerName(object["metadata"]["name"].AsString());
    if (name && name->level == LedgerName::Level::kHour) whole_hours.insert(name->hour);
    if (name && name->level == LedgerName::Level::kDay) whole_days.insert(name->day);
  }
  Ledger out;
  for (const json::Value& object : objects) {
    const auto name = ParseLedgerName(object["metadata"]["name"].AsString());
    if (!name) continue;
    const bool is_day = name->level == LedgerName::Level::kDay;
    if (!is_day && whole_days.contains(name->day)) continue;
    if (name->level == LedgerName::Level::kBatch && whole_hours.contains(name->hour)) continue;
    out.Add(LedgerOf(object["spec"]));
  }
  return out;
}

std::vector<NodeRow> NodeRowsOf(const NodeFacts& node, const Ledger& history, Time now) {
  std::vector<NodeRow> rows;
  for (const NodeRow& row : history.nodes)
    if (row.uid == node.uid) rows.push_back(row);
  std::sort(rows.begin(), rows.end(),
            [](const NodeRow& a, const NodeRow& b) { return a.time < b.time; });
  const Time from = rows.empty() ? node.created : rows.back().time.to;
  rows.push_back({node.machine, node.name, node.uid, {std::min(from, now), now}});
  return rows;
}

}  // namespace muster::cost
