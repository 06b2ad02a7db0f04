// src/cluster/quantity.h
//
// Quantity: Kubernetes' exact decimal amounts ("100m", "1Gi", "0.5").
// Source: k8s.io/apimachinery pkg/api/resource.
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

namespace muster::cluster {

inline constexpr size_t kMaxQuantityLength = 512;  // characters; longer text is malformed

class Quantity {
 public:
  enum class Format : uint8_t { kDecimalSi, kBinarySi, kDecimalExponent };

  Quantity() = default;
  static Quantity FromUnits(int64_t units, Format format = Format::kDecimalSi);
  static Quantity FromMilli(int64_t milli);
  // BadRequest: quantities must match the regular expression
  // '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'. Amounts below one nano-unit round up, as
  // upstream.
  static Result<Quantity> Parse(std::string_view text);
  // A JSON string or number; null is zero.
  static Result<Quantity> FromJson(const json::Value& value);

  // Rounded up to whole (milli-)units; saturates at the int64 limits.
  int64_t Units() const;
  int64_t Milli() const;
  bool IsZero() const { return nano_ == 0; }
  bool IsNegative() const { return nano_ < 0; }
  bool IsWhole() const;  // no fraction of a unit

  Quantity operator+(const Quantity& other) const;
  Quantity operator-(const Quantity& other) const;
  std::strong_ordering operator<=>(const Quantity& other) const { return nano_ <=> other.nano_; }
  bool operator==(const Quantity& other) const { return nano_ == other.nano_; }

  // The canonical text, e.g. "1Gi", "1500m", "12e6".
  std::string ToString() const;

 private:
  __int128 nano_ = 0;
  Format format_ = Format::kDecimalSi;
};

}  // namespace muster::cluster
