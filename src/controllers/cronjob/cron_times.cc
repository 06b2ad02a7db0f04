#include "controllers/cronjob/cron_times.h"

#include <algorithm>
#include <cstdint>

namespace muster::controllers {
namespace {

using schema::CronSchedule;

constexpr int64_t kSecondsPerDay = 86400;
constexpr Duration kFarthest = hours(24) * 366 * 5;

bool Has(uint64_t bits, int64_t value) { return (bits >> value & 1) != 0; }

// Rounded down, also of what is negative.
int64_t DayOf(int64_t time) {
  return (time >= 0 ? time : time - kSecondsPerDay + 1) / kSecondsPerDay;
}

bool MatchesDay(const CronSchedule& schedule, std::chrono::sys_days day) {
  const std::chrono::year_month_day date(day);
  if (!Has(schedule.months, static_cast<unsigned>(date.month()))) return false;
  const bool of_month = Has(schedule.days, static_cast<unsigned>(date.day()));
  const bool of_week = Has(schedule.weekdays, std::chrono::weekday(day).c_encoding());
  return schedule.any_day || schedule.any_weekday ? of_month && of_week : of_month || of_week;
}

// The first local minute from `from` on, before `end`; both in seconds since 1970.
std::optional<int64_t> NextLocal(const CronSchedule& schedule, int64_t from, int64_t end) {
  for (int64_t day = DayOf(from); day * kSecondsPerDay < end; ++day) {
    if (!MatchesDay(schedule, std::chrono::sys_days(std::chrono::days(day)))) continue;
    const int64_t first = std::max<int64_t>(from - day * kSecondsPerDay + 59, 0) / 60;
    for (int64_t minute = first; minute < 24 * 60; ++minute) {
      if (!Has(schedule.hours, minute / 60)) {
        minute += 59 - minute % 60;  // to the hour's end
        continue;
      }
      if (!Has(schedule.minutes, minute % 60)) continue;
      const int64_t found = day * kSecondsPerDay + minute * 60;
      return found < end ? std::optional<int64_t>(found) : std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Time> NextTime(const CronSchedule& schedule, const TimeZone& zone, Time time) {
  const Time whole = std::chrono::floor<seconds>(time);
  if (schedule.every > kFarthest) return std::nullopt;
  if (schedule.every > Duration::zero()) return whole + schedule.every;
  const Time limit = whole + kFarthest;
  // Within a period all is plain arithmetic on local time.
  Time from = whole + seconds(1);
  while (from < limit) {
    const TimeZone::Period period = zone.At(from);
    const Time end = period.until ? std::min(*period.until, limit) : limit;
    const auto local = [&period](Time at) {
      return std::chrono::floor<seconds>(at.time_since_epoch()).count() + period.offset.count();
    };
    if (const std::optional<int64_t> found = NextLocal(schedule, local(from), local(end)))
      return Time(seconds(*found) - period.offset);
    from = end;
  }
  return std::nullopt;
}

std::optional<Time> LastTime(const CronSchedule& schedule, const TimeZone& zone, Time since,
                             Time now) {
  const auto is_due = [&](Time after) {
    const std::optional<Time> next = NextTime(schedule, zone, after);
    return next.has_value() && *next <= now;
  };
  if (!is_due(since)) return std::nullopt;
  if (schedule.every > Duration::zero()) {
    const Time first = *NextTime(schedule, zone, since);
    return first + schedule.every * ((now - first) / schedule.every);
  }
  // Something is due after `before`, nothing is after `after`.
  Time before = since, after = now;
  while (after - before > seconds(1)) {
    const Time middle = before + (after - before) / 2;
    (is_due(middle) ? before : after) = middle;
  }
  return NextTime(schedule, zone, before);
}

}  // namespace muster::controllers
