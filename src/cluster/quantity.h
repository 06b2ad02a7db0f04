// src/cluster/quantity.h
//
// Quantity: arithmetic with Kubernetes' exact decimal amounts ("100m", "1Gi", "0.5"), which
// schema/quantity_syntax.h reads and writes. Source: k8s.io/apimachinery pkg/api/resource.
//
// A Quantity is an integer number of nano-units in 128 bits: every amount that upstream's int64
// milli and nano scales can hold is exact, sums never overflow in practice (checked), comparison is
// one instruction pair.

#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "json/value.h"
#include "schema/quantity_syntax.h"

namespace muster::cluster {

class Quantity {
 public:
  using Format = schema::QuantityFormat;

  Quantity() = default;
  static Quantity FromUnits(int64_t units, Format format = Format::kDecimalSi);
  static Quantity FromMilli(int64_t milli);
  // Errors as of schema::ParseAmount. Amounts below one nano-unit round up, as upstream.
  static Result<Quantity> Parse(std::string_view text);
  // A JSON string or number; null is zero.
  static Result<Quantity> FromJson(const json::Value& value);

  // Rounded up to whole (milli-)units; saturates at the int64 limits.
  int64_t Units() const;
  int64_t Milli() const;
  bool IsZero() const { return amount_.nano == 0; }
  bool IsNegative() const { return amount_.nano < 0; }
  bool IsWhole() const { return amount_.IsWhole(); }  // no fraction of a unit

  Quantity operator+(const Quantity& other) const;
  Quantity operator-(const Quantity& other) const;
  auto operator<=>(const Quantity& other) const = default;

  // The canonical text, e.g. "1Gi", "1500m", "12e6".
  std::string ToString() const { return amount_.Canonical(); }

 private:
  explicit Quantity(schema::Amount amount) : amount_(amount) {}

  schema::Amount amount_;
};

}  // namespace muster::cluster
