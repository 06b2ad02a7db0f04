#include "json/yaml_scalar.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "json/number.h"

namespace muster::json {
namespace {

constexpr std::array<std::string_view, 11> kTrue = {"y",    "Y",    "yes", "Yes", "YES", "true",
                                                    "True", "TRUE", "on",  "On",  "ON"};
constexpr std::array<std::string_view, 11> kFalse = {"n",     "N",     "no",  "No",  "NO", "false",
                                                     "False", "FALSE", "off", "Off", "OFF"};
constexpr std::array<std::string_view, 5> kNull = {"", "~", "null", "Null", "NULL"};
constexpr std::array<std::string_view, 12> kNotFinite = {".nan",  ".NaN",  ".NAN",  ".inf",
                                                         ".Inf",  ".INF",  "+.inf", "+.Inf",
                                                         "+.INF", "-.inf", "-.Inf", "-.INF"};

template <size_t N>
bool OneOf(const std::array<std::string_view, N>& words, std::string_view text) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// `digits` of base 2..16 as a decimal token, of any length.
std::optional<std::string> ToDecimal(std::string_view digits, int base) {
  if (digits.empty()) return std::nullopt;
  std::string decimal = "0";  // least significant digit first
  for (const char c : digits) {
    int digit = -1;
    if (IsDigit(c)) digit = c - '0';
    if (c >= 'a' && c <= 'f') digit = c - 'a' + 10;
    if (c >= 'A' && c <= 'F') digit = c - 'A' + 10;
    if (digit < 0 || digit >= base) return std::nullopt;
    int carry = digit;
    for (char& d : decimal) {
      carry += (d - '0') * base;
      d = static_cast<char>('0' + carry % 10);
      carry /= 10;
    }
    for (; carry > 0; carry /= 10) decimal.push_back(static_cast<char>('0' + carry % 10));
  }
  while (decimal.size() > 1 && decimal.back() == '0') decimal.pop_back();
  std::reverse(decimal.begin(), decimal.end());
  return decimal;
}

// An integer as Go's strconv reads it with base 0: 12, 0x1f, 0o17, 017, 0b101, with a sign.
std::optional<std::string> Integer(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  int base = 10;
  if (text.size() > 1 && text[0] == '0') {
    const char mark = static_cast<char>(text[1] | 0x20);
    base = mark == 'x' ? 16 : mark == 'b' ? 2 : 8;
    text.remove_prefix(mark == 'x' || mark == 'b' || mark == 'o' ? 2 : 1);
  }
  constexpr size_t kMaxDigits = 400;  // far beyond any number; the conversion is quadratic
  if (text.size() > kMaxDigits) return std::nullopt;
  std::optional<std::string> decimal = ToDecimal(text, base);
  if (decimal && negative && *decimal != "0") decimal->insert(decimal->begin(), '-');
  return decimal;
}

// [-+]? ( .d+ | d+ (.d*)? ) ( [eE][-+]?d+ )?  rewritten as a JSON number, its digits kept.
std::optional<std::string> Float(std::string_view text) {
  std::string token;
  size_t i = 0;
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) {
    if (text[i] == '-') token = "-";
    ++i;
  }
  const auto digits = [&] {
    const size_t start = i;
    while (i < text.size() && IsDigit(text[i])) ++i;
    return text.substr(start, i - start);
  };
  std::string_view whole = digits();
  while (whole.size() > 1 && whole[0] == '0') whole.remove_prefix(1);
  const bool has_whole = !whole.empty();
  token += has_whole ? whole : "0";
  if (i < text.size() && text[i] == '.') {
    ++i;
    const std::string_view fraction = digits();
    if (fraction.empty() && !has_whole) return std::nullopt;
    if (!fraction.empty()) token.append(".").append(fraction);
  } else if (!has_whole) {
    return std::nullopt;
  }
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    token += 'e';
    ++i;
    if (i < text.size() && (text[i] == '-' || text[i] == '+')) token += text[i++];
    const std::string_view exponent = digits();
    if (exponent.empty()) return std::nullopt;
    token += exponent;
  }
  if (i != text.size()) return std::nullopt;
  return token;
}

// YAML 1.1 base 60 (1:30): read as a string, but other readers see a number, so it is quoted on the
// way out.
bool IsBase60(std::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  if (text.empty() || !IsDigit(text[0])) return false;
  size_t i = 0;
  while (i < text.size() && (IsDigit(text[i]) || text[i] == '_')) ++i;
  int groups = 0;
  while (i < text.size() && text[i] == ':') {
    size_t start = ++i;
    while (i < text.size() && IsDigit(text[i])) ++i;
    const size_t length = i - start;
    if (length == 0 || length > 2 || (length == 2 && text[start] > '5')) return false;
    ++groups;
  }
  if (i < text.size() && text[i] == '.') {
    ++i;
    while (i < text.size() && (IsDigit(text[i]) || text[i] == '_')) ++i;
  }
  return groups > 0 && i == text.size();
}

size_t SkipDigits(std::string_view text, size_t i, size_t most) {
  const size_t end = std::min(text.size(), i + most);
  while (i < end && IsDigit(text[i])) ++i;
  return i;
}

// YYYY-M-D, alone or followed by a time of day: the Go library reads it as a string, and quotes it
// on the way out.
bool IsTimestamp(std::string_view text) {
  if (SkipDigits(text, 0, 5) != 4 || text.size() < 8 || text[4] != '-') return false;
  size_t i = SkipDigits(text, 5, 2);
  if (i == 5 || i >= text.size() || text[i] != '-') return false;
  const size_t day = ++i;
  i = SkipDigits(text, i, 2);
  if (i == day) return false;
  if (i == text.size()) return true;
  const char separator = text[i];
  if (separator != 'T' && separator != 't' && separator != ' ') return false;
  for (int part = 0; part < 3; ++part) {
    const size_t start = ++i;
    i = SkipDigits(text, i, 2);
    if (i == start) return false;
    if (part < 2 && (i >= text.size() || text[i] != ':')) return false;
  }
  if (i < text.size() && text[i] == '.') i = SkipDigits(text, i + 1, 9);
  if (separator == ' ') return i == text.size();
  if (text.substr(i) == "Z") return true;
  return text.size() == i + 6 && (text[i] == '+' || text[i] == '-') && text[i + 3] == ':';
}

}  // namespace

Value ResolvePlainScalar(std::string_view text) {
  if (OneOf(kNull, text)) return Value();
  if (OneOf(kTrue, text)) return Value(true);
  if (OneOf(kFalse, text)) return Value(false);
  const char first = text[0];
  if (!IsDigit(first) && first != '-' && first != '+' && first != '.') return Value(text);
  if (IsTimestamp(text)) return Value(text);
  std::string plain(text);
  std::erase(plain, '_');
  if (plain.empty()) return Value(text);
  if (first != '.') {
    if (const auto integer = Integer(plain)) return Value::Number(*integer);
  }
  if (const auto number = Float(plain)) return Value::Number(*number);
  return Value(text);
}

bool LooksLikeOtherThanString(std::string_view text) {
  return !ResolvePlainScalar(text).IsString() || OneOf(kNotFinite, text) || text == "<<" ||
         IsBase60(text) || IsTimestamp(text);
}

}  // namespace muster::json
