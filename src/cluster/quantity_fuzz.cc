// Quantities, two of them on two lines: the canonical text means the same amount, and the second
// time is its own canonical text; what is short enough to be counted another way has exactly that
// value; sums, differences, order and rounding agree with each other.

#include <optional>

#include "base/check.h"
#include "base/fuzz_test_support.h"
#include "cluster/quantity.h"
#include "schema/quantity_syntax.h"

namespace {

using muster::cluster::Quantity;
using muster::schema::Amount;
using muster::schema::ParseAmount;

std::optional<Amount> Read(std::string_view text) {
  const muster::Result<Amount> amount = ParseAmount(text);
  if (!amount) return std::nullopt;
  const std::string canonical = amount->Canonical();
  const muster::Result<Amount> again = ParseAmount(canonical);
  CHECK(again.has_value() && *again == *amount);
  // As upstream, "22687.5Ki" is written 23232000, which is no binary amount any more: 23232k.
  const std::string settled = again->Canonical();
  CHECK(ParseAmount(settled)->Canonical() == settled);
  return *amount;
}

// "12.345" of at most nine digits before the point and nine behind, counted digit by digit.
std::optional<__int128> Counted(std::string_view text) {
  __int128 nano = 0;
  __int128 worth = 1'000'000'000;  // of the digit before the point
  size_t whole = 0;
  bool fraction = false;
  if (text.empty()) return std::nullopt;
  for (const char c : text) {
    if (c == '.' && !fraction) {
      fraction = true;
    } else if (c < '0' || c > '9') {
      return std::nullopt;
    } else if (fraction) {
      worth /= 10;
      if (worth == 0) return std::nullopt;
      nano += worth * (c - '0');
    } else {
      if (++whole > 9) return std::nullopt;
      nano = nano * 10 + worth * (c - '0');
    }
  }
  return nano;
}

void CheckExact(std::string_view text, const Amount& amount) {
  struct Unit {
    std::string_view suffix;
    __int128 factor;
  };
  constexpr Unit kUnits[] = {{"k", 1000},     {"M", 1'000'000}, {"Ki", 1 << 10},
                             {"Mi", 1 << 20}, {"e0", 1},        {"", 1}};
  for (const Unit& unit : kUnits) {
    if (!text.ends_with(unit.suffix)) continue;
    const auto nano = Counted(text.substr(0, text.size() - unit.suffix.size()));
    if (nano) CHECK(amount.nano == *nano * unit.factor);
    return;
  }
}

void CheckRounding(const Quantity& one) {
  const Quantity units = Quantity::FromUnits(one.Units());
  CHECK(one.IsNegative() ? units <= one : units >= one);
  CHECK((units == one) == one.IsWhole());
  if (one.Milli() == INT64_MAX || one.Milli() == INT64_MIN) return;  // saturated
  const Quantity milli = Quantity::FromMilli(one.Milli());
  CHECK(one.IsNegative() ? milli <= one && milli >= units : milli >= one && milli <= units);
}

void CheckSums(const Quantity& a, const Quantity& b) {
  CHECK(a + b == b + a);
  CHECK(a + b - b == a);
  CHECK((a < b) == (a - b).IsNegative());
  CHECK((a == b) == (a - b).IsZero());
  CHECK((a - b).IsZero() || (a - b).IsNegative() != (b - a).IsNegative());
}

}  // namespace

FUZZ_TARGET(quantity, input) {
  muster::FuzzInput lines(input);
  const std::string_view first = lines.Line();
  const std::string_view second = lines.Rest();
  const std::optional<Amount> a = Read(first);
  const std::optional<Amount> b = Read(second);
  if (a) CheckExact(first, *a);
  if (!a || !b) return;
  CheckRounding(*Quantity::Parse(first));
  CheckSums(*Quantity::Parse(first), *Quantity::Parse(second));
  // The sign before the text is the sign of the amount.
  const std::string negated = first.starts_with('-')   ? std::string(first.substr(1))
                              : first.starts_with('+') ? "-" + std::string(first.substr(1))
                                                       : "-" + std::string(first);
  CHECK(Read(negated)->nano == -a->nano);
}
