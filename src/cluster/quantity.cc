#include "cluster/quantity.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace muster::cluster {

namespace {

using Int128 = __int128;

constexpr Int128 kNano = 1'000'000'000;

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
  return Quantity({Int128{units} * kNano, format});
}

Quantity Quantity::FromMilli(int64_t milli) {
  return Quantity({Int128{milli} * (kNano / 1000), Format::kDecimalSi});
}

Result<Quantity> Quantity::Parse(std::string_view text) {
  ASSIGN_OR_RETURN(const schema::Amount amount, schema::ParseAmount(text));
  return Quantity(amount);
}

Result<Quantity> Quantity::FromJson(const json::Value& value) {
  if (value.IsNull()) return Quantity();
  ASSIGN_OR_RETURN(const schema::Amount amount, schema::AmountFromJson(value));
  return Quantity(amount);
}

int64_t Quantity::Units() const { return DivideUp(amount_.nano, kNano); }

int64_t Quantity::Milli() const { return DivideUp(amount_.nano, kNano / 1000); }

Quantity Quantity::operator+(const Quantity& other) const {
  Quantity out = IsZero() ? other : *this;
  CHECK(!__builtin_add_overflow(amount_.nano, other.amount_.nano, &out.amount_.nano));
  return out;
}

Quantity Quantity::operator-(const Quantity& other) const {
  Quantity out = IsZero() ? other : *this;
  CHECK(!__builtin_sub_overflow(amount_.nano, other.amount_.nano, &out.amount_.nano));
  return out;
}

}  // namespace muster::cluster
