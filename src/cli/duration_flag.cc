#include "cli/duration_flag.h"

#include <algorithm>
#include <cctype>

#include "base/strings.h"

namespace muster::cli {
namespace {

constexpr Duration kForEver = hours(24 * 7);

// nullopt-like: zero for an unknown unit.
Duration UnitOf(std::string_view unit) {
  if (unit == "ms") return milliseconds(1);
  if (unit == "s") return seconds(1);
  if (unit == "m") return minutes(1);
  if (unit == "h") return hours(1);
  return Duration(0);
}

Result<Duration> Total(std::string_view flag, std::string_view text) {
  const auto wrong = [&] {
    return Error(Reason::kInvalid, "--{} {:?}: expected a duration such as 30s, 5m or 1m30s", flag,
                 std::string(text));
  };
  if (text == "0") return Duration(0);
  Duration total{};
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
    const size_t digits =
        static_cast<size_t>(std::find_if_not(rest.begin(), rest.end(), is_digit) - rest.begin());
    const std::optional<int64_t> number = ParseInt(rest.substr(0, digits));
    rest.remove_prefix(digits);
    const size_t letters =
        static_cast<size_t>(std::find_if(rest.begin(), rest.end(), is_digit) - rest.begin());
    const Duration unit = UnitOf(rest.substr(0, letters));
    if (!number || *number > 1'000'000'000 / 3600 || unit == Duration(0)) return wrong();
    total = std::min(total + unit * *number, kForEver + hours(1));
    rest.remove_prefix(letters);
  }
  if (text.empty()) return wrong();
  return total;
}

}  // namespace

Result<Duration> ParseDurationFlag(std::string_view flag, std::string_view text) {
  if (text.starts_with('-')) return kForEver;
  ASSIGN_OR_RETURN(const Duration total, Total(flag, text));
  return std::min(total, kForEver);
}

Result<Duration> ParseSpanFlag(std::string_view flag, std::string_view text) {
  ASSIGN_OR_RETURN(const Duration total, Total(flag, text));
  if (total <= kForEver) return total;
  return Error(Reason::kInvalid, "--{} {:?}: at most a week, 168h", flag, std::string(text));
}

}  // namespace muster::cli
