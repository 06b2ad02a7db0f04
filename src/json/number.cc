#include "json/number.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace muster::json {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// A token as (-1)^negative * digits * 10^exponent, `digits` without zeros at either end ("" is
// zero).
struct Decimal {
  bool negative = false;
  std::string digits;
  int64_t exponent = 0;
  bool operator==(const Decimal&) const = default;
};

constexpr int64_t kMaxExponent = 1'000'000'000'000;  // beyond any text that we would hold

Decimal Parse(std::string_view token) {
  Decimal decimal;
  size_t i = 0;
  if (!token.empty() && token[0] == '-') decimal.negative = true, ++i;
  bool fraction = false;
  for (; i < token.size(); ++i) {
    if (token[i] == '.') {
      fraction = true;
    } else if (IsDigit(token[i])) {
      decimal.digits.push_back(token[i]);
      if (fraction) --decimal.exponent;
    } else {
      break;
    }
  }
  if (i < token.size()) {  // e or E
    ++i;
    const bool negative = i < token.size() && token[i] == '-';
    if (i < token.size() && (token[i] == '-' || token[i] == '+')) ++i;
    int64_t exponent = 0;
    for (; i < token.size(); ++i)
      exponent = std::min(exponent * 10 + (token[i] - '0'), kMaxExponent);
    decimal.exponent += negative ? -exponent : exponent;
  }
  decimal.digits.erase(0, std::min(decimal.digits.find_first_not_of('0'), decimal.digits.size()));
  while (!decimal.digits.empty() && decimal.digits.back() == '0') {
    decimal.digits.pop_back();
    ++decimal.exponent;
  }
  if (decimal.digits.empty()) decimal = Decimal{};  // -0 and 0e5 are 0
  return decimal;
}

std::optional<int64_t> WholeInt(std::string_view digits) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<int64_t> TokenToInt(std::string_view token) {
  if (token.find_first_of(".eE") == std::string_view::npos) return WholeInt(token);
  Decimal decimal = Parse(token);
  if (decimal.digits.empty()) return 0;
  if (decimal.exponent < 0 || decimal.exponent > 18) return std::nullopt;
  decimal.digits.append(static_cast<size_t>(decimal.exponent), '0');
  if (decimal.negative) decimal.digits.insert(decimal.digits.begin(), '-');
  return WholeInt(decimal.digits);
}

double TokenToDouble(std::string_view token) {
  double value = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
  if (error == std::errc()) return value;
  return std::strtod(std::string(token).c_str(),
                     nullptr);  // out of range: gives the infinity or zero
}

bool SameNumber(std::string_view a, std::string_view b) { return a == b || Parse(a) == Parse(b); }

std::string FormatDouble(double value) {
  if (value == 0) return std::signbit(value) ? "-0" : "0";
  std::array<char, 400> text;
  const double size = std::abs(value);
  // encoding/json: exponents only below 1e-6 and from 1e21 on, without a padding zero.
  const bool scientific = size < 1e-6 || size >= 1e21;
  const auto format = scientific ? std::chars_format::scientific : std::chars_format::fixed;
  const auto end = std::to_chars(text.begin(), text.end(), value, format).ptr;
  std::string written(text.begin(), end);
  const size_t e = written.find('e');
  if (e != std::string::npos && e + 3 < written.size() && written[e + 1] == '-' &&
      written[e + 2] == '0') {
    written.erase(e + 2, 1);
  }
  return written;
}

size_t NumberLength(std::string_view text) {
  size_t i = 0;
  const auto digits = [&] {
    const size_t start = i;
    while (i < text.size() && IsDigit(text[i])) ++i;
    return i > start;
  };
  if (i < text.size() && text[i] == '-') ++i;
  if (i < text.size() && text[i] == '0') {
    ++i;
  } else if (!digits()) {
    return 0;
  }
  if (i < text.size() && text[i] == '.') {
    ++i;
    if (!digits()) return 0;
  }
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && (text[i] == '+' || text[i] == '-')) ++i;
    if (!digits()) return 0;
  }
  return i;
}

}  // namespace muster::json
