// src/json/utf8.h
//
// UTF-8 as Go treats it: what is not valid becomes U+FFFD.
//
// Thread: any (pure functions).

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::json {

inline constexpr uint32_t kReplacementCharacter = 0xFFFD;

struct DecodedRune {
  uint32_t rune = kReplacementCharacter;
  size_t size = 1;     // bytes taken; 1 for an invalid byte
  bool valid = false;  // U+FFFD itself, well encoded, is valid
};

// The first character of `text`. REQUIRES: !text.empty().
DecodedRune DecodeRune(std::string_view text);
void AppendRune(std::string& out, uint32_t rune);  // surrogates and beyond U+10FFFF: U+FFFD
bool IsValidUtf8(std::string_view text);
// Each byte that belongs to no valid character replaced by U+FFFD.
std::string ReplaceInvalidUtf8(std::string_view text);

}  // namespace muster::json
