#include "cluster/quantity.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/check.h"

namespace muster::cluster {

namespace {

using Int128 = __int128;

constexpr Int128 kNano = 1'000'000'000;
// Upstream caps amounts at 2^63-1 units (resource.maxAllowed); larger ones are read as that.
constexpr Int128 kMaxNano = Int128{std::numeric_limits<int64_t>::max()} * kNano;

struct Suffix {
  std::string_view text;
  int base;  // 2 or 10
  int exponent;
  Quantity::Format format;
};

constexpr std::array<Suffix, 16> kSuffixes = {{
    {"", 10, 0, Quantity::Format::kDecimalSi},
    {"n", 10, -9, Quantity::Format::kDecimalSi},
    {"u", 10, -6, Quantity::Format::kDecimalSi},
    {"m", 10, -3, Quantity::Format::kDecimalSi},
    {"k", 10, 3, Quantity::Format::kDecimalSi},
    {"M", 10, 6, Quantity::Format::kDecimalSi},
    {"G", 10, 9, Quantity::Format::kDecimalSi},
    {"T", 10, 12, Quantity::Format::kDecimalSi},
    {"P", 10, 15, Quantity::Format::kDecimalSi},
    {"E", 10, 18, Quantity::Format::kDecimalSi},
    {"Ki", 2, 10, Quantity::Format::kBinarySi},
    {"Mi", 2, 20, Quantity::Format::kBinarySi},
    {"Gi", 2, 30, Quantity::Format::kBinarySi},
    {"Ti", 2, 40, Quantity::Format::kBinarySi},
    {"Pi", 2, 50, Quantity::Format::kBinarySi},
    {"Ei", 2, 60, Quantity::Format::kBinarySi},
}};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

ErrorStatus Malformed() {
  return Error(Reason::kBadRequest,
               "quantities must match the regular expression "
               "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
}

ErrorStatus BadSuffix() { return Error(Reason::kBadRequest, "unable to parse quantity's suffix"); }

// The pieces of "-1.50Gi": sign, "1", "50", "Gi".
struct Parts {
  bool negative = false;
  std::string_view whole, fraction, suffix;
};

Result<Parts> SplitText(std::string_view text) {
  Parts parts;
  if (text.empty()) return Malformed();
  if (text[0] == '+' || text[0] == '-') {
    parts.negative = text[0] == '-';
    text.remove_prefix(1);
  }
  size_t at = 0;
  while (at < text.size() && IsDigit(text[at])) ++at;
  parts.whole = text.substr(0, at);
  if (at < text.size() && text[at] == '.') {
    const size_t start = ++at;
    while (at < text.size() && IsDigit(text[at])) ++at;
    parts.fraction = text.substr(start, at - start);
  }
  if (parts.whole.empty() && parts.fraction.empty()) return Malformed();
  parts.suffix = text.substr(at);
  if (parts.suffix.empty()) return parts;
  // What is left must look like a suffix: letters, then perhaps a signed number.
  size_t end = 0;
  while (end < parts.suffix.size() &&
         std::string_view("eEinumkKMGTP").find(parts.suffix[end]) != std::string_view::npos)
    ++end;
  if (end < parts.suffix.size() && (parts.suffix[end] == '+' || parts.suffix[end] == '-')) ++end;
  while (end < parts.suffix.size() && IsDigit(parts.suffix[end])) ++end;
  if (end != parts.suffix.size()) return Malformed();
  return parts;
}

Result<Suffix> ReadSuffix(std::string_view text) {
  for (const Suffix& suffix : kSuffixes) {
    if (suffix.text == text) return suffix;
  }
  if (text.size() > 1 && (text[0] == 'e' || text[0] == 'E')) {
    std::string_view digits = text.substr(1);
    const bool negative = digits[0] == '-';
    if (digits[0] == '-' || digits[0] == '+') digits.remove_prefix(1);
    if (digits.empty()) return BadSuffix();
    int exponent = 0;
    for (const char c : digits) {
      if (!IsDigit(c)) return BadSuffix();
      exponent = std::min(exponent * 10 + (c - '0'), 100'000);
    }
    return Suffix{text, 10, negative ? -exponent : exponent, Quantity::Format::kDecimalExponent};
  }
  return BadSuffix();
}

// Decimal digits "whole.fraction" as an integer, and the power of ten that it is to be multiplied
// with. Digits beyond what can matter only say whether anything is left over.
struct Mantissa {
  Int128 value = 0;
  int exponent = 0;
  bool sticky = false;  // a non-zero digit was left out
};

Mantissa ReadMantissa(std::string_view whole, std::string_view fraction) {
  Mantissa out;
  constexpr Int128 kEnough = Int128{1'000'000'000'000'000'000} * 1'000'000'000'000;  // 10^30
  const auto take = [&](char digit, bool fractional) {
    if (out.value < kEnough) {
      out.value = out.value * 10 + (digit - '0');
      if (fractional) --out.exponent;
    } else {
      out.sticky |= digit != '0';
      if (!fractional) ++out.exponent;
    }
  };
  for (const char digit : whole) take(digit, false);
  for (const char digit : fraction) take(digit, true);
  return out;
}

// mantissa * base^exponent in nano-units, rounded away from zero, at most kMaxNano.
Int128 Scale(Mantissa mantissa, const Suffix& suffix) {
  Int128 value = mantissa.value;
  bool sticky = mantissa.sticky;
  if (value == 0) return sticky ? 1 : 0;
  int tens = mantissa.exponent + 9;
  int twos = 0;
  (suffix.base == 10 ? tens : twos) += suffix.exponent;
  constexpr Int128 kRoom = Int128{1} << 120;
  // Divide by ten only after all multiplications by two, so that nothing is lost on the way.
  while (twos > 0 && value < kRoom) {
    value *= 2;
    --twos;
  }
  while (tens < 0 && value > 0) {
    sticky |= value % 10 != 0;
    value /= 10;
    ++tens;
    while (twos > 0 && value < kRoom) {
      // A dropped fraction would have been doubled too: only reached above 2^120, far over the cap.
      value *= 2;
      --twos;
    }
  }
  if (twos > 0) return kMaxNano;
  while (tens > 0) {
    if (value > kMaxNano) return kMaxNano;
    value *= 10;
    --tens;
  }
  if (sticky) value += 1;
  return std::min(value, kMaxNano);
}

std::string Digits(Int128 value) {
  if (value == 0) return "0";
  const bool negative = value < 0;
  unsigned __int128 rest =
      negative ? -static_cast<unsigned __int128>(value) : static_cast<unsigned __int128>(value);
  std::string out;
  while (rest > 0) {
    out.push_back(static_cast<char>('0' + static_cast<int>(rest % 10)));
    rest /= 10;
  }
  if (negative) out.push_back('-');
  std::reverse(out.begin(), out.end());
  return out;
}

// Removes factors of 1000 while none is lost; returns how many.
int RemoveThousands(Int128& value, int most) {
  int removed = 0;
  while (removed < most && value % 1000 == 0) {
    value /= 1000;
    ++removed;
  }
  return removed;
}

std::string WriteDecimal(Int128 nano, bool exponent_form) {
  static constexpr std::array<std::string_view, 10> kNames = {"n", "u", "m", "",  "k",
                                                              "M", "G", "T", "P", "E"};
  const int thousands = RemoveThousands(nano, 9);
  if (!exponent_form) return Digits(nano) + std::string(kNames[static_cast<size_t>(thousands)]);
  const int exponent = thousands * 3 - 9;
  return exponent == 0 ? Digits(nano) : Digits(nano) + "e" + std::to_string(exponent);
}

std::string WriteBinary(Int128 units) {
  static constexpr std::array<std::string_view, 7> kNames = {"",   "Ki", "Mi", "Gi",
                                                             "Ti", "Pi", "Ei"};
  size_t name = 0;
  while (name + 1 < kNames.size() && units % 1024 == 0) {
    units /= 1024;
    ++name;
  }
  return Digits(units) + std::string(kNames[name]);
}

// Rounded away from zero.
int64_t DivideUp(Int128 value, Int128 divisor) {
  Int128 quotient = value / divisor;
  if (value % divisor != 0) quotient += value < 0 ? -1 : 1;
  constexpr Int128 kMost = std::numeric_limits<int64_t>::max();
  constexpr Int128 kLeast = std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(std::clamp(quotient, kLeast, kMost));
}

}  // namespace

Quantity Quantity::FromUnits(int64_t units, Format format) {
  Quantity out;
  out.nano_ = Int128{units} * kNano;
  out.format_ = format;
  return out;
}

Quantity Quantity::FromMilli(int64_t milli) {
  Quantity out;
  out.nano_ = Int128{milli} * (kNano / 1000);
  return out;
}

Result<Quantity> Quantity::Parse(std::string_view text) {
  if (text.size() > kMaxQuantityLength) return Malformed();
  ASSIGN_OR_RETURN(const Parts parts, SplitText(text));
  ASSIGN_OR_RETURN(const Suffix suffix, ReadSuffix(parts.suffix));
  Quantity out;
  out.nano_ = Scale(ReadMantissa(parts.whole, parts.fraction), suffix);
  if (parts.negative) out.nano_ = -out.nano_;
  out.format_ = suffix.format;
  return out;
}

Result<Quantity> Quantity::FromJson(const json::Value& value) {
  if (value.IsNull()) return Quantity();
  if (value.IsString()) return Parse(value.AsString());
  if (value.IsNumber()) return Parse(value.NumberToken());
  return Malformed();
}

int64_t Quantity::Units() const { return DivideUp(nano_, kNano); }

int64_t Quantity::Milli() const { return DivideUp(nano_, kNano / 1000); }

bool Quantity::IsWhole() const { return nano_ % kNano == 0; }

Quantity Quantity::operator+(const Quantity& other) const {
  Quantity out = *this;
  CHECK(!__builtin_add_overflow(nano_, other.nano_, &out.nano_));
  if (nano_ == 0) out.format_ = other.format_;
  return out;
}

Quantity Quantity::operator-(const Quantity& other) const {
  Quantity out = *this;
  CHECK(!__builtin_sub_overflow(nano_, other.nano_, &out.nano_));
  if (nano_ == 0) out.format_ = other.format_;
  return out;
}

std::string Quantity::ToString() const {
  if (nano_ == 0) return "0";
  switch (format_) {
    case Format::kDecimalExponent:
      return WriteDecimal(nano_, true);
    case Format::kBinarySi: {
      // As upstream: below 1024, or with a fraction, a binary amount is written in decimal form.
      const Int128 magnitude = nano_ < 0 ? -nano_ : nano_;
      if (magnitude >= 1024 * kNano && IsWhole()) return WriteBinary(nano_ / kNano);
      return WriteDecimal(nano_, false);
    }
    case Format::kDecimalSi:
      break;
  }
  return WriteDecimal(nano_, false);
}

}  // namespace muster::cluster
