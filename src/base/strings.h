// src/base/strings.h
//
// Small text helpers that the standard library lacks. No locale, no allocation where a view will
// do.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

// "a,b,,c" at ',' -> {"a", "b", "", "c"}; "" -> {""}.
std::vector<std::string_view> Split(std::string_view text, char separator);
// The same without empty parts.
std::vector<std::string_view> SplitNonEmpty(std::string_view text, char separator);
std::string Join(const std::vector<std::string>& parts, std::string_view separator);
std::string_view Trim(std::string_view text);  // spaces, tabs, CR, LF
std::string ToLower(std::string_view text);    // ASCII
bool EqualsIgnoreCase(std::string_view a, std::string_view b);
std::string ReplaceAll(std::string text, std::string_view from, std::string_view to);

// Whole-text decimal integers; nullopt on anything else, overflow included.
std::optional<int64_t> ParseInt(std::string_view text);

// RFC 4648 with padding; surplus bits of the last character are ignored, as in Go.
std::string Base64Encode(std::string_view bytes);
std::optional<std::string> Base64Decode(std::string_view text);
std::string HexEncode(std::string_view bytes);

// FNV-1a, 64 bits: stable across runs and machines. Not for secrets.
uint64_t Hash64(std::string_view text, uint64_t seed = 0xcbf29ce484222325);

// RFC 3986 percent decoding; `plus_is_space` for query strings. nullopt on a broken escape.
std::optional<std::string> PercentDecode(std::string_view text, bool plus_is_space);
std::string PercentEncode(std::string_view text);  // all but unreserved characters

}  // namespace muster
