#include "cli/printable.h"

#include <fmt/core.h>

namespace muster::cli {
namespace {

constexpr unsigned char kFirstPrintable = 0x20, kDelete = 0x7f;
// U+0080 to U+009f, as UTF-8.
constexpr unsigned char kHighControls = 0xc2, kFirstHigh = 0x80, kLastHigh = 0x9f;

std::string Write(std::string_view text, bool keep_lines) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const unsigned char next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0;
    if (keep_lines && (c == '\n' || c == '\t')) {
      out += text[i];
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c < kFirstPrintable || c == kDelete) {
      out += fmt::format("\\x{:02x}", c);
    } else if (c == kHighControls && next >= kFirstHigh && next <= kLastHigh) {
      out += fmt::format("\\x{:02x}", next);
      ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

std::string Printable(std::string_view text) { return Write(text, false); }

std::string PrintableLines(std::string_view text) { return Write(text, true); }

}  // namespace muster::cli
