#include "json/write.h"

#include <array>
#include <cstdint>

#include "json/utf8.h"

namespace muster::json {
namespace {

// Bytes that a Go JSON string writes as they are; multi-byte characters are looked at one by one.
constexpr std::array<bool, 256> kPlain = [] {
  std::array<bool, 256> plain{};
  for (int c = 0x20; c < 0x80; ++c) plain[c] = true;
  for (const char c : {'"', '\\', '<', '>', '&'}) plain[static_cast<uint8_t>(c)] = false;
  return plain;
}();

void AppendUnicodeEscape(std::string& out, uint32_t rune) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out.push_back(kHex[rune >> shift & 0xF]);
}

void AppendEscaped(std::string& out, uint32_t rune) {
  switch (rune) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\b':
      out += "\\b";
      return;
    case '\f':
      out += "\\f";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      AppendUnicodeEscape(out, rune);
  }
}

void AppendScalar(std::string& out, const Value& value) {
  switch (value.kind()) {
    case Kind::kBool:
      out += value.AsBool() ? "true" : "false";
      return;
    case Kind::kNumber:
      out += value.NumberToken();
      return;
    case Kind::kString:
      AppendString(out, value.AsString());
      return;
    default:
      out += "null";
  }
}

void NewLine(std::string& out, int spaces) {
  out.push_back('\n');
  out.append(static_cast<size_t>(spaces), ' ');
}

void AppendPretty(std::string& out, const Value& value, int indent, int depth) {
  if (value.IsObject() && !value.empty()) {
    out.push_back('{');
    bool first = true;
    for (const auto& [key, member] : value.members()) {
      if (!first) out.push_back(',');
      first = false;
      NewLine(out, indent * (depth + 1));
      AppendString(out, key);
      out += ": ";
      AppendPretty(out, member, indent, depth + 1);
    }
    NewLine(out, indent * depth);
    out.push_back('}');
  } else if (value.IsArray() && !value.empty()) {
    out.push_back('[');
    bool first = true;
    for (const Value& item : value.items()) {
      if (!first) out.push_back(',');
      first = false;
      NewLine(out, indent * (depth + 1));
      AppendPretty(out, item, indent, depth + 1);
    }
    NewLine(out, indent * depth);
    out.push_back(']');
  } else {
    AppendTo(out, value);
  }
}

}  // namespace

void AppendString(std::string& out, std::string_view text) {
  out.push_back('"');
  size_t start = 0;
  size_t i = 0;
  while (i < text.size()) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if (kPlain[byte]) {
      ++i;
      continue;
    }
    const DecodedRune decoded = DecodeRune(text.substr(i));
    const bool separator = decoded.rune == 0x2028 || decoded.rune == 0x2029;
    if (byte < 0x80 || !decoded.valid || separator) {
      out.append(text, start, i - start);
      AppendEscaped(out, decoded.rune);
      start = i + decoded.size;
    }
    i += decoded.size;
  }
  out.append(text, start, i - start);
  out.push_back('"');
}

void AppendTo(std::string& out, const Value& value) {
  if (value.IsObject()) {
    out.push_back('{');
    bool first = true;
    for (const auto& [key, member] : value.members()) {
      if (!first) out.push_back(',');
      first = false;
      AppendString(out, key);
      out.push_back(':');
      AppendTo(out, member);
    }
    out.push_back('}');
  } else if (value.IsArray()) {
    out.push_back('[');
    bool first = true;
    for (const Value& item : value.items()) {
      if (!first) out.push_back(',');
      first = false;
      AppendTo(out, item);
    }
    out.push_back(']');
  } else {
    AppendScalar(out, value);
  }
}

std::string Write(const Value& value) {
  std::string out;
  AppendTo(out, value);
  return out;
}

std::string WritePretty(const Value& value, int indent) {
  std::string out;
  AppendPretty(out, value, indent, 0);
  return out;
}

}  // namespace muster::json
