#include "json/utf8.h"

#include <simdjson.h>

namespace muster::json {

DecodedRune DecodeRune(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return {first, 1, true};
  size_t size = 0;
  uint32_t rune = 0;
  uint32_t smallest = 0;
  if (first >= 0xC2 && first < 0xE0) {
    size = 2, rune = first & 0x1F, smallest = 0x80;
  } else if ((first & 0xF0) == 0xE0) {
    size = 3, rune = first & 0x0F, smallest = 0x800;
  } else if (first >= 0xF0 && first < 0xF5) {
    size = 4, rune = first & 0x07, smallest = 0x10000;
  }
  if (size == 0 || text.size() < size) return {};
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    rune = rune << 6 | (byte(i) & 0x3F);
  }
  if (rune < smallest || rune > 0x10FFFF || (rune >= 0xD800 && rune < 0xE000)) return {};
  return {rune, size, true};
}

void AppendRune(std::string& out, uint32_t rune) {
  if (rune > 0x10FFFF || (rune >= 0xD800 && rune < 0xE000)) rune = kReplacementCharacter;
  const auto add = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (rune < 0x80) {
    add(rune);
  } else if (rune < 0x800) {
    add(0xC0 | rune >> 6), add(0x80 | (rune & 0x3F));
  } else if (rune < 0x10000) {
    add(0xE0 | rune >> 12), add(0x80 | (rune >> 6 & 0x3F)), add(0x80 | (rune & 0x3F));
  } else {
    add(0xF0 | rune >> 18), add(0x80 | (rune >> 12 & 0x3F)), add(0x80 | (rune >> 6 & 0x3F));
    add(0x80 | (rune & 0x3F));
  }
}

bool IsValidUtf8(std::string_view text) {
  return simdjson::validate_utf8(text.data(), text.size());
}

std::string ReplaceInvalidUtf8(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const DecodedRune decoded = DecodeRune(text);
    AppendRune(clean, decoded.rune);
    text.remove_prefix(decoded.size);
  }
  return clean;
}

}  // namespace muster::json
