#include "base/time.h"

#include <cstdint>
#include <ctime>

#include <fmt/core.h>

namespace muster {
namespace {

using std::chrono::days;
using std::chrono::floor;
using std::chrono::year_month_day;

struct Parts {
  int year;
  unsigned month, day;
  int64_t hour, minute, second, nano;
};

Parts Split(Time time) {
  const auto day = floor<days>(time);
  const year_month_day date(day);
  const int64_t rest = (time - day).count();
  const int64_t total_seconds = rest / 1'000'000'000;
  return {static_cast<int>(date.year()),
          static_cast<unsigned>(date.month()),
          static_cast<unsigned>(date.day()),
          total_seconds / 3600,
          total_seconds / 60 % 60,
          total_seconds % 60,
          rest % 1'000'000'000};
}

// Reads exactly `count` digits; -1 if there are not as many.
int64_t Digits(std::string_view& text, size_t count) {
  if (text.size() < count) return -1;
  int64_t value = 0;
  for (size_t i = 0; i < count; ++i) {
    if (text[i] < '0' || text[i] > '9') return -1;
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(count);
  return value;
}

bool Eat(std::string_view& text, char a, char b) {
  if (text.empty() || (text[0] != a && text[0] != b)) return false;
  text.remove_prefix(1);
  return true;
}

// The fraction after a '.', as nanoseconds; more than nine digits are cut.
int64_t Fraction(std::string_view& text) {
  int64_t nano = 0;
  int digits = 0;
  while (!text.empty() && text[0] >= '0' && text[0] <= '9') {
    if (digits < 9) nano = nano * 10 + (text[0] - '0');
    ++digits;
    text.remove_prefix(1);
  }
  if (digits == 0) return -1;
  for (int i = digits; i < 9; ++i) nano *= 10;
  return nano;
}

class SystemClock final : public Clock {
 public:
  Time Wall() const override { return std::chrono::system_clock::now(); }
  Duration Monotonic() const override {
    return std::chrono::steady_clock::now().time_since_epoch();
  }
};

}  // namespace

std::string FormatTime(Time time) {
  const Parts p = Split(time);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", p.year, p.month, p.day, p.hour,
                     p.minute, p.second);
}

std::string FormatMicroTime(Time time) {
  const Parts p = Split(time);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", p.year, p.month, p.day, p.hour,
                     p.minute, p.second, p.nano / 1000);
}

std::string FormatNanoTime(Time time) {
  const Parts p = Split(time);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z", p.year, p.month, p.day, p.hour,
                     p.minute, p.second, p.nano);
}

std::optional<Time> ParseTime(std::string_view text) {
  const int64_t year = Digits(text, 4);
  if (year < 0 || !Eat(text, '-', '-')) return std::nullopt;
  const int64_t month = Digits(text, 2);
  if (month < 0 || !Eat(text, '-', '-')) return std::nullopt;
  const int64_t day = Digits(text, 2);
  if (day < 0 || !Eat(text, 'T', 't')) return std::nullopt;
  const int64_t hour = Digits(text, 2);
  if (hour < 0 || hour > 23 || !Eat(text, ':', ':')) return std::nullopt;
  const int64_t minute = Digits(text, 2);
  if (minute < 0 || minute > 59 || !Eat(text, ':', ':')) return std::nullopt;
  const int64_t second = Digits(text, 2);
  if (second < 0 || second > 60) return std::nullopt;
  int64_t nano = 0;
  if (!text.empty() && text[0] == '.') {
    text.remove_prefix(1);
    nano = Fraction(text);
    if (nano < 0) return std::nullopt;
  }
  int64_t offset_seconds = 0;
  if (!Eat(text, 'Z', 'z')) {
    if (text.empty() || (text[0] != '+' && text[0] != '-')) return std::nullopt;
    const int64_t sign = text[0] == '+' ? 1 : -1;
    text.remove_prefix(1);
    const int64_t offset_hour = Digits(text, 2);
    if (offset_hour < 0 || offset_hour > 23 || !Eat(text, ':', ':')) return std::nullopt;
    const int64_t offset_minute = Digits(text, 2);
    if (offset_minute < 0 || offset_minute > 59) return std::nullopt;
    offset_seconds = sign * (offset_hour * 3600 + offset_minute * 60);
  }
  if (!text.empty()) return std::nullopt;
  const year_month_day date(std::chrono::year(static_cast<int>(year)),
                            std::chrono::month(static_cast<unsigned>(month)),
                            std::chrono::day(static_cast<unsigned>(day)));
  // The representable years of 64-bit nanoseconds end in 2262; beyond them there is no Time.
  if (!date.ok() || year < 1678 || year > 2261) return std::nullopt;
  const Duration since_midnight = seconds(hour * 3600 + minute * 60 + second - offset_seconds);
  return Time(std::chrono::sys_days(date)) + since_midnight + Duration(nano);
}

std::string HumanDuration(Duration duration) {
  const int64_t s = std::chrono::duration_cast<seconds>(duration).count();
  if (s < -1) return "<invalid>";
  if (s < 0) return "0s";
  if (s < 60 * 2) return fmt::format("{}s", s);
  const int64_t m = s / 60;
  if (m < 10) return s % 60 == 0 ? fmt::format("{}m", m) : fmt::format("{}m{}s", m, s % 60);
  if (m < 60 * 3) return fmt::format("{}m", m);
  const int64_t h = m / 60;
  if (h < 8) return m % 60 == 0 ? fmt::format("{}h", h) : fmt::format("{}h{}m", h, m % 60);
  if (h < 48) return fmt::format("{}h", h);
  if (h < 24 * 8)
    return h % 24 == 0 ? fmt::format("{}d", h / 24) : fmt::format("{}d{}h", h / 24, h % 24);
  if (h < 24 * 365 * 2) return fmt::format("{}d", h / 24);
  const int64_t d = h / 24;
  if (d < 365 * 8) {
    return d % 365 == 0 ? fmt::format("{}y", d / 365) : fmt::format("{}y{}d", d / 365, d % 365);
  }
  return fmt::format("{}y", d / 365);
}

const Clock& RealClock() {
  static const SystemClock clock;
  return clock;
}

}  // namespace muster
