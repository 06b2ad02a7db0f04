#include "base/go_duration.h"

#include "base/strings.h"

namespace muster {

std::optional<Duration> ParseGoDuration(std::string_view text) {
  constexpr int64_t kMaxPart = 1'000'000'000;  // keeps the product inside 64 bits
  Duration total{};
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    const size_t digits = text.find_first_not_of("0123456789");
    if (digits == 0 || digits == std::string_view::npos) return std::nullopt;
    const auto number = ParseInt(text.substr(0, digits));
    text.remove_prefix(digits);
    const size_t unit_length = std::min(text.find_first_of("0123456789"), text.size());
    const std::string_view unit = text.substr(0, unit_length);
    text.remove_prefix(unit_length);
    if (!number || *number > kMaxPart) return std::nullopt;
    if (unit == "h" && *number <= 1'000'000)
      total += hours(*number);
    else if (unit == "m")
      total += minutes(std::min<int64_t>(*number, 60'000'000));
    else if (unit == "s")
      total += seconds(*number);
    else if (unit == "ms")
      total += milliseconds(*number);
    else
      return std::nullopt;
  }
  return total;
}

}  // namespace muster
