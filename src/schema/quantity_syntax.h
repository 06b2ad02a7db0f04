// src/schema/quantity_syntax.h
//
// Quantities as the API has them ("100m", "1Gi", "0.5"): is it one, what is its canonical text,
// which of two is larger. Arithmetic is cluster/quantity.h's. Source: k8s.io/apimachinery
// pkg/api/resource.
//
// Thread: any (pure functions).

#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "json/value.h"

namespace muster::schema {

inline constexpr size_t kMaxQuantityTextLength = 512;  // characters; longer text is malformed

enum class QuantityFormat : uint8_t { kDecimalSi, kBinarySi, kDecimalExponent };

struct Amount {
  __int128 nano =
      0;  // rounded away from zero to whole nano-units; capped at +-(2^63 - 1) units, as upstream
  QuantityFormat format = QuantityFormat::kDecimalSi;

  bool IsWhole() const { return nano % 1'000'000'000 == 0; }
  std::strong_ordering operator<=>(const Amount& other) const { return nano <=> other.nano; }
  bool operator==(const Amount& other) const { return nano == other.nano; }
  std::string Canonical() const;  // "500m", "1Gi", "12e6"
};

// BadRequest in upstream's words.
Result<Amount> ParseAmount(std::string_view text);
// A JSON string or number; anything else is no quantity.
Result<Amount> AmountFromJson(const json::Value& value);

}  // namespace muster::schema
