// src/json/number.h
//
// Arithmetic on JSON number tokens, which we keep as text. Exact: no token is too long or too
// large.
//
// Thread: any (pure functions).

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::json {

// The exact integer, "1e3" and "1.0" included; nullopt for fractions and what does not fit.
std::optional<int64_t> TokenToInt(std::string_view token);
double TokenToDouble(std::string_view token);
// Equal as numbers: "1" and "1.0", but not "9007199254740993" and "9007199254740992".
bool SameNumber(std::string_view a, std::string_view b);
// As Go's encoding/json writes a float64. REQUIRES: finite.
std::string FormatDouble(double value);
// Length of the JSON number at the start of `text`, 0 if there is none (RFC 8259 section 6).
size_t NumberLength(std::string_view text);

}  // namespace muster::json
