#include "schema/cron_schedule.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <string>
#include <vector>

#include "base/strings.h"
#include "schema/time_zones.h"

namespace muster::schema {
namespace {

constexpr int64_t kLongStep = 64;  // beyond every field's end

struct Bounds {
  int64_t least, most;
  std::span<const std::string_view> names = {};  // of least, least + 1, ...
};

constexpr std::array<std::string_view, 12> kMonths = {"jan", "feb", "mar", "apr", "may", "jun",
                                                      "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::array<std::string_view, 7> kWeekdays = {"sun", "mon", "tue", "wed",
                                                       "thu", "fri", "sat"};
constexpr Bounds kMinutes = {0, 59};
constexpr Bounds kHours = {0, 23};
constexpr Bounds kDays = {1, 31};
constexpr Bounds kMonthNumbers = {1, 12, kMonths};
constexpr Bounds kWeekdayNumbers = {0, 6, kWeekdays};

template <class... Args>
Status Bad(fmt::format_string<Args...> text, Args&&... args) {
  return Status(Reason::kBadRequest, fmt::format(text, std::forward<Args>(args)...));
}

Result<int64_t> ParseNumber(std::string_view text) {
  const std::optional<int64_t> number = ParseInt(text);
  if (!number) {
    return Error(Bad("failed to parse int from {}: strconv.Atoi: parsing \"{}\": invalid syntax",
                     text, text));
  }
  if (*number < 0) return Error(Bad("negative number ({}) not allowed: {}", *number, text));
  return *number;
}

Result<int64_t> ParseNumberOrName(std::string_view text, const Bounds& bounds) {
  const auto name = std::ranges::find(bounds.names, ToLower(text));
  if (name != bounds.names.end()) return bounds.least + (name - bounds.names.begin());
  return ParseNumber(text);
}

struct Range {
  int64_t first = 0, last = 0, step = 1;
  bool any = false;  // "*" with nothing after it
};

bool IsAny(std::string_view text) { return text == "*" || text == "?"; }

// "*", "5", "1-5", "*/15", "1-5/2" and "5/15", which goes on to the end.
Result<Range> ParseRange(std::string_view text, const Bounds& bounds) {
  const std::vector<std::string_view> parts = Split(text, '/');
  const std::vector<std::string_view> ends = Split(parts[0], '-');
  Range range{bounds.least, bounds.most, 1, true};
  if (!IsAny(ends[0])) {
    range.any = false;
    ASSIGN_OR_RETURN(range.first, ParseNumberOrName(ends[0], bounds));
    range.last = range.first;
    if (ends.size() == 2) {
      ASSIGN_OR_RETURN(range.last, ParseNumberOrName(ends[1], bounds));
    } else if (ends.size() > 2) {
      return Error(Bad("too many hyphens: {}", text));
    }
  }
  if (parts.size() == 2) {
    ASSIGN_OR_RETURN(range.step, ParseNumber(parts[1]));
    if (ends.size() == 1) range.last = bounds.most;
    if (range.step > 1) range.any = false;
  } else if (parts.size() > 2) {
    return Error(Bad("too many slashes: {}", text));
  }
  return range;
}

Status CheckRange(const Range& range, const Bounds& bounds, std::string_view text) {
  if (range.first < bounds.least) {
    return Bad("beginning of range ({}) below minimum ({}): {}", range.first, bounds.least, text);
  }
  if (range.last > bounds.most)
    return Bad("end of range ({}) above maximum ({}): {}", range.last, bounds.most, text);
  if (range.first > range.last) {
    return Bad("beginning of range ({}) beyond end of range ({}): {}", range.first, range.last,
               text);
  }
  if (range.step == 0) return Bad("step of range should be a positive number: {}", text);
  return Status::Ok();
}

Result<uint64_t> ParseField(std::string_view text, const Bounds& bounds, bool* any = nullptr) {
  uint64_t bits = 0;
  for (const std::string_view part : SplitNonEmpty(text, ',')) {
    ASSIGN_OR_RETURN(const Range range, ParseRange(part, bounds));
    RETURN_IF_ERROR(CheckRange(range, bounds, part));
    for (int64_t n = range.first; n <= range.last; n += std::min(range.step, kLongStep))
      bits |= uint64_t{1} << n;
    if (any != nullptr) *any = *any || range.any;
  }
  return bits;
}

Result<CronSchedule> ParseFields(const std::vector<std::string_view>& fields) {
  CronSchedule schedule;
  ASSIGN_OR_RETURN(schedule.minutes, ParseField(fields[0], kMinutes));
  ASSIGN_OR_RETURN(schedule.hours, ParseField(fields[1], kHours));
  ASSIGN_OR_RETURN(schedule.days, ParseField(fields[2], kDays, &schedule.any_day));
  ASSIGN_OR_RETURN(schedule.months, ParseField(fields[3], kMonthNumbers));
  ASSIGN_OR_RETURN(schedule.weekdays,
                   ParseField(fields[4], kWeekdayNumbers, &schedule.any_weekday));
  return schedule;
}

// What Go's time.ParseDuration reads: "1h30m", "1.5s"; in nanoseconds.
Result<Duration> ParseDuration(std::string_view text) {
  constexpr double kMaxNanoseconds = 9.2e18;
  const Status invalid = Bad("time: invalid duration \"{}\"", text);
  std::string_view rest = text;
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  if (rest == "0") return Duration{};
  if (rest.empty()) return Error(invalid);
  double total = 0;
  while (!rest.empty()) {
    double number = 0;
    const size_t digits = std::min(rest.find_first_not_of("0123456789."), rest.size());
    const auto [end, error] =
        std::from_chars(rest.data(), rest.data() + digits, number, std::chars_format::fixed);
    if (digits == 0 || error != std::errc() || end != rest.data() + digits) return Error(invalid);
    rest.remove_prefix(digits);
    const std::string_view unit =
        rest.substr(0, std::min(rest.find_first_of("0123456789."), rest.size()));
    if (unit.empty()) return Error(Bad("time: missing unit in duration \"{}\"", text));
    const std::array<std::pair<std::string_view, double>, 8> units = {{{"ns", 1},
                                                                       {"us", 1e3},
                                                                       {"\u00b5s", 1e3},
                                                                       {"\u03bcs", 1e3},
                                                                       {"ms", 1e6},
                                                                       {"s", 1e9},
                                                                       {"m", 60e9},
                                                                       {"h", 3600e9}}};
    const auto found = std::ranges::find(units, unit, [](const auto& one) { return one.first; });
    if (found == units.end())
      return Error(Bad("time: unknown unit \"{}\" in duration \"{}\"", unit, text));
    total += number * found->second;
    if (total > kMaxNanoseconds) return Error(invalid);
    rest.remove_prefix(unit.size());
  }
  return Duration(static_cast<int64_t>(negative ? -total : total));
}

Result<CronSchedule> ParseDescriptor(std::string_view text) {
  constexpr std::string_view kEvery = "@every ";
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kWords = {
      {{"@yearly", "0 0 1 1 *"},
       {"@annually", "0 0 1 1 *"},
       {"@monthly", "0 0 1 * *"},
       {"@weekly", "0 0 * * 0"},
       {"@daily", "0 0 * * *"},
       {"@midnight", "0 0 * * *"},
       {"@hourly", "0 * * * *"}}};
  for (const auto& [word, fields] : kWords) {
    if (text == word) return ParseFields(SplitNonEmpty(fields, ' '));
  }
  if (!text.starts_with(kEvery)) return Error(Bad("unrecognized descriptor: {}", text));
  const Result<Duration> every = ParseDuration(text.substr(kEvery.size()));
  if (!every) return Error(Bad("failed to parse duration {}: {}", text, every.error().message()));
  CronSchedule schedule;
  schedule.every = std::max(*every - *every % seconds(1), Duration(seconds(1)));
  return schedule;
}

}  // namespace

Result<CronSchedule> CronSchedule::Parse(std::string_view text) {
  if (text.empty()) return Error(Bad("empty spec string"));
  if (text.starts_with("TZ=") || text.starts_with("CRON_TZ=")) {
    const size_t end = std::min(text.find(' '), text.size());
    const size_t begin = text.find('=') + 1;
    const std::string_view zone = text.substr(begin, end - begin);
    if (PosixTimeZone(zone).empty())
      return Error(Bad("provided bad location {}: unknown time zone {}", zone, zone));
    text = Trim(text.substr(end));
  }
  if (text.starts_with('@')) return ParseDescriptor(text);
  std::string spaced(text);
  std::ranges::replace_if(spaced, [](char c) { return c >= '\t' && c <= '\r'; }, ' ');
  const std::vector<std::string_view> fields = SplitNonEmpty(spaced, ' ');
  if (fields.size() == 5) return ParseFields(fields);
  const std::vector<std::string> words(fields.begin(), fields.end());
  return Error(Bad("expected exactly 5 fields, found {}: [{}]", fields.size(), Join(words, " ")));
}

}  // namespace muster::schema
