#include "schema/quantity_syntax.h"

#include <algorithm>
#include <array>
#include <optional>

namespace muster::schema {
namespace {

constexpr __int128 kNano = 1'000'000'000;
constexpr __int128 kMaxNano = static_cast<__int128>(INT64_MAX) * kNano;
constexpr int kMaxExponent = 1000;  // larger exponents saturate or vanish anyway

struct Suffix {
  std::string_view text;
  int exponent;  // of 10, or of 1024 for binary ones
};
constexpr std::array<Suffix, 10> kDecimal = {{{"n", -9},
                                              {"u", -6},
                                              {"m", -3},
                                              {"", 0},
                                              {"k", 3},
                                              {"M", 6},
                                              {"G", 9},
                                              {"T", 12},
                                              {"P", 15},
                                              {"E", 18}}};
constexpr std::array<Suffix, 6> kBinary = {
    {{"Ki", 1}, {"Mi", 2}, {"Gi", 3}, {"Ti", 4}, {"Pi", 5}, {"Ei", 6}}};

template <size_t N>
std::optional<int> ExponentOf(const std::array<Suffix, N>& table, std::string_view text) {
  for (const Suffix& suffix : table) {
    if (suffix.text == text) return suffix.exponent;
  }
  return std::nullopt;
}

template <size_t N>
std::string_view TextOf(const std::array<Suffix, N>& table, int exponent) {
  for (const Suffix& suffix : table) {
    if (suffix.exponent == exponent) return suffix.text;
  }
  return "";
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

__int128 PowerOfTen(int exponent) {
  __int128 power = 1;
  for (; exponent > 0; --exponent) power *= 10;
  return power;
}

// Decimal digits as a number, at most kMaxNano.
__int128 Saturated(std::string_view digits) {
  __int128 value = 0;
  for (const char c : digits) {
    value = value * 10 + (c - '0');
    if (value >= kMaxNano) return kMaxNano;
  }
  return value;
}

// whole.fraction * 10^exponent in nano-units, rounded up.
__int128 DecimalNano(std::string_view whole, std::string_view fraction, int exponent) {
  std::string digits(whole);
  digits += fraction;
  int shift = 9 + exponent - static_cast<int>(fraction.size());
  bool more = false;
  for (; shift < 0 && !digits.empty(); ++shift) {
    more = more || digits.back() != '0';
    digits.pop_back();
  }
  __int128 value = Saturated(digits);
  for (; shift > 0 && value > 0 && value < kMaxNano; --shift) value *= 10;
  return std::min(value + (more ? 1 : 0), kMaxNano);
}

// whole.fraction * 1024^power in nano-units, rounded up.
__int128 BinaryNano(std::string_view whole, std::string_view fraction, int power) {
  constexpr size_t kFractionDigits = 18;
  const __int128 factor = static_cast<__int128>(1) << (10 * power);
  const __int128 units = Saturated(whole);
  if (units > INT64_MAX / factor) return kMaxNano;
  const std::string_view kept = fraction.substr(0, kFractionDigits);
  const bool more = fraction.find_first_not_of('0', kept.size()) != std::string_view::npos;
  const __int128 scale = PowerOfTen(static_cast<int>(kept.size()));
  const __int128 scaled = (kept.empty() ? 0 : Saturated(kept)) * factor;
  const __int128 rest = scaled % scale * kNano;
  const __int128 nano =
      units * factor * kNano + scaled / scale * kNano + (rest + scale - 1) / scale;
  return std::min(nano + (more ? 1 : 0), kMaxNano);
}

std::string Digits(__int128 value) {
  std::string text;
  const bool negative = value < 0;
  if (negative) value = -value;
  do {
    text.push_back(static_cast<char>('0' + static_cast<int>(value % 10)));
    value /= 10;
  } while (value > 0);
  if (negative) text.push_back('-');
  std::reverse(text.begin(), text.end());
  return text;
}

ErrorStatus FormatError() {
  return Error(Reason::kBadRequest,
               "quantities must match the regular expression "
               "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
}

}  // namespace

Result<Amount> ParseAmount(std::string_view text) {
  if (text.size() > kMaxQuantityTextLength) return FormatError();
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  size_t i = 0;
  while (i < text.size() && IsDigit(text[i])) ++i;
  const std::string_view whole = text.substr(0, i);
  std::string_view fraction;
  if (i < text.size() && text[i] == '.') {
    const size_t start = ++i;
    while (i < text.size() && IsDigit(text[i])) ++i;
    fraction = text.substr(start, i - start);
  }
  if (whole.empty() && fraction.empty()) return FormatError();
  const std::string_view suffix = text.substr(i);
  Amount amount;
  if (const auto exponent = ExponentOf(kDecimal, suffix)) {
    amount.nano = DecimalNano(whole, fraction, *exponent);
  } else if (const auto power = ExponentOf(kBinary, suffix)) {
    amount.nano = BinaryNano(whole, fraction, *power);
    amount.format = amount.nano > 0 && amount.nano < kNano ? QuantityFormat::kDecimalSi
                                                           : QuantityFormat::kBinarySi;
  } else if (suffix.size() > 1 && (suffix[0] == 'e' || suffix[0] == 'E')) {
    std::string_view digits = suffix.substr(1);
    const bool down = digits[0] == '-';
    if (down || digits[0] == '+') digits.remove_prefix(1);
    if (digits.empty() || !std::all_of(digits.begin(), digits.end(), IsDigit)) return FormatError();
    const int size = static_cast<int>(std::min<__int128>(Saturated(digits), kMaxExponent));
    amount.nano = DecimalNano(whole, fraction, down ? -size : size);
    amount.format = QuantityFormat::kDecimalExponent;
  } else {
    const bool letters =
        suffix.find_first_not_of("eEinumkKMGTP+-0123456789") == std::string_view::npos;
    if (!letters) return FormatError();
    return Error(Reason::kBadRequest, "unable to parse quantity's suffix");
  }
  if (negative) amount.nano = -amount.nano;
  return amount;
}

Result<Amount> AmountFromJson(const json::Value& value) {
  return ParseAmount(value.IsNumber() ? value.NumberToken() : value.AsString());
}

std::string Amount::Canonical() const {
  if (nano == 0) return "0";
  const __int128 units = nano / kNano;
  const __int128 size = units < 0 ? -units : units;
  if (format == QuantityFormat::kBinarySi && IsWhole() && size >= 1024) {
    __int128 mantissa = units;
    int power = 0;
    while (mantissa % 1024 == 0 && power < 6) mantissa /= 1024, ++power;
    return Digits(mantissa).append(TextOf(kBinary, power));
  }
  __int128 mantissa = nano;
  int exponent = -9;
  while (mantissa % 1000 == 0 && exponent < 18) mantissa /= 1000, exponent += 3;
  std::string text = Digits(mantissa);
  if (format == QuantityFormat::kDecimalExponent)
    return exponent == 0 ? text : fmt::format("{}e{}", text, exponent);
  return text.append(TextOf(kDecimal, exponent));
}

}  // namespace muster::schema
