#include "controllers/cronjob/time_zone.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "schema/time_zones.h"

namespace muster::controllers {
namespace {

constexpr int64_t kSecondsPerDay = 86400;
constexpr int64_t kMaxOffset = 26 * 3600;     // RFC 9636 section 3.3.1
constexpr int64_t kMaxRuleTime = 167 * 3600;  // the same, of the time of a change

int64_t SecondsOf(Time time) {
  return std::chrono::floor<seconds>(time.time_since_epoch()).count();
}

int DayOfWeek(std::chrono::sys_days day) {
  return static_cast<int>(std::chrono::weekday(day).c_encoding());
}

}  // namespace

// "<+0330>-3:30", "EST5EDT,M3.2.0,M11.1.0/1", "CET-1CEST,M3.5.0,M10.5.0/3".
class TimeZone::RuleReader {
 public:
  explicit RuleReader(std::string_view text) : text_(text) {}

  bool Read(TimeZone& zone) {
    int64_t standard = 0;
    if (!Name() || !Clock(standard, kMaxOffset)) return false;
    zone.standard_ = -standard;  // POSIX counts westwards
    if (text_.empty()) return true;
    int64_t summer = standard - 3600;
    if (!Name() || (!text_.starts_with(',') && !Clock(summer, kMaxOffset))) return false;
    zone.summer_ = -summer;
    return Change(zone.to_summer_) && Change(zone.to_standard_) && text_.empty();
  }

 private:
  bool Take(char wanted) {
    if (!text_.starts_with(wanted)) return false;
    text_.remove_prefix(1);
    return true;
  }

  bool Name() {
    size_t end = 0;
    if (Take('<')) {
      end = text_.find('>');
      if (end == text_.npos) return false;
      text_.remove_prefix(end + 1);
      return true;
    }
    while (end < text_.size() && std::isalpha(static_cast<unsigned char>(text_[end]))) ++end;
    text_.remove_prefix(end);
    return end >= 3;
  }

  bool Number(int64_t& out, int64_t least, int64_t most) {
    size_t end = 0;
    out = 0;
    for (; end < text_.size() && end < 6 && text_[end] >= '0' && text_[end] <= '9'; ++end)
      out = out * 10 + (text_[end] - '0');
    text_.remove_prefix(end);
    return end > 0 && out >= least && out <= most;
  }

  // [+-]hh[:mm[:ss]]
  bool Clock(int64_t& out, int64_t most) {
    const bool negative = Take('-');
    if (!negative) Take('+');
    int64_t hour = 0, minute = 0, second = 0;
    if (!Number(hour, 0, most / 3600)) return false;
    if (Take(':') && !Number(minute, 0, 59)) return false;
    if (Take(':') && !Number(second, 0, 59)) return false;
    out = hour * 3600 + minute * 60 + second;
    if (negative) out = -out;
    return true;
  }

  bool Change(YearlyChange& out) {
    if (!Take(',')) return false;
    int64_t month = 0, week = 0, day = 0;
    if (Take('M')) {
      if (!Number(month, 1, 12) || !Take('.') || !Number(week, 1, 5) || !Take('.') ||
          !Number(day, 0, 6))
        return false;
    } else {
      out.kind = Take('J') ? YearlyChange::Day::kJulian : YearlyChange::Day::kZeroBased;
      if (!Number(day, out.kind == YearlyChange::Day::kJulian ? 1 : 0, 365)) return false;
    }
    out.month = static_cast<int>(month);
    out.week = static_cast<int>(week);
    out.day = static_cast<int>(day);
    out.time = 2 * 3600;
    return !Take('/') || Clock(out.time, kMaxRuleTime);
  }

  std::string_view text_;
};

int64_t TimeZone::YearlyChange::InYear(int year) const {
  const std::chrono::year of{year};
  std::chrono::sys_days date = of / std::chrono::January / 1;
  if (kind == Day::kZeroBased) {
    date += std::chrono::days(day);
  } else if (kind == Day::kJulian) {  // February 29 is never counted
    date += std::chrono::days(day - 1 + (of.is_leap() && day >= 60 ? 1 : 0));
  } else {
    const std::chrono::month of_month{static_cast<unsigned>(month)};
    date = of / of_month / 1;
    date += std::chrono::days((day - DayOfWeek(date) + 7) % 7 + 7 * (week - 1));
    const std::chrono::sys_days last = of / of_month / std::chrono::last;
    while (date > last) date -= std::chrono::days(7);
  }
  return date.time_since_epoch().count() * kSecondsPerDay + time;
}

Result<TimeZone> TimeZone::Parse(std::string_view rule) {
  TimeZone zone;
  if (!RuleReader(rule).Read(zone))
    return Error(Reason::kBadRequest, "{:?} is not the rule of a time zone", rule);
  return zone;
}

Result<TimeZone> TimeZone::Find(std::string_view name) {
  if (name.empty()) return TimeZone();
  const std::string_view rule = schema::PosixTimeZone(name);
  if (rule.empty()) return Error(Reason::kNotFound, "unknown time zone {}", name);
  return Parse(rule);
}

TimeZone::Period TimeZone::At(Time time) const {
  if (!summer_) return {seconds(standard_), std::nullopt};
  struct Change {
    int64_t at, offset;
  };
  const int64_t now = SecondsOf(time);
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const int year = static_cast<int>(std::chrono::year_month_day(day).year());
  // The last change that is not after now, and the next one, are two of six.
  std::vector<Change> changes;
  for (int of = year - 1; of <= year + 1; ++of) {
    changes.push_back({to_summer_.InYear(of) - standard_, *summer_});
    changes.push_back({to_standard_.InYear(of) - *summer_, standard_});
  }
  std::sort(changes.begin(), changes.end(),
            [](const Change& a, const Change& b) { return a.at < b.at; });
  const auto next =
      std::upper_bound(changes.begin(), changes.end(), now,
                       [](int64_t at, const Change& change) { return at < change.at; });
  Period period;
  period.offset = seconds(next == changes.begin() ? standard_ : std::prev(next)->offset);
  if (next != changes.end()) period.until = Time(seconds(next->at));
  return period;
}

}  // namespace muster::controllers
