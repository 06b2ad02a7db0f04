// How libyaml's emitter, with the settings of sigs.k8s.io/yaml, lays out a tree: block style, two
// spaces, lists not indented below their key, long lines folded at a space beyond column 80. The
// golden vectors check it.

#include <algorithm>
#include <cstdint>
#include <vector>

#include <fmt/core.h>

#include "json/utf8.h"
#include "json/write.h"
#include "json/yaml_scalar.h"

namespace muster::json {
namespace {

constexpr int kIndent = 2;
constexpr size_t kFoldColumn = 80;
constexpr size_t kMaxSimpleKeyBytes = 128;  // longer keys are written as "? key"

enum class Style { kPlain, kSingleQuoted, kDoubleQuoted, kLiteral };

bool IsBreak(uint32_t rune) {
  return rune == '\n' || rune == '\r' || rune == 0x85 || rune == 0x2028 || rune == 0x2029;
}

// What the emitter writes without an escape: no tab, nothing beyond the basic plane.
bool IsPrintable(uint32_t rune) {
  return rune == '\n' || (rune >= 0x20 && rune <= 0x7E) || (rune >= 0xA0 && rune < 0xD800) ||
         (rune >= 0xE000 && rune < 0xFFFE && rune != 0xFEFF);
}

// What a scalar contains that rules out a style.
struct Traits {
  bool multiline = false;
  bool indicators = false;  // starts like syntax, or holds ": " or " #"
  bool edge_space = false;  // starts or ends with a space or break
  bool trailing_space = false;
  bool break_space = false;  // a space after a break
  bool special = false;      // unprintable, or a space before a break
};

bool StartsLikeSyntax(std::string_view text) {
  if (text.starts_with("---") || text.starts_with("...")) return true;
  if (std::string_view("#,[]{}&*!|>'\"%@`").find(text[0]) != std::string_view::npos) return true;
  const bool space_follows = text.size() == 1 || text[1] == ' ' || text[1] == '\t' ||
                             IsBreak(DecodeRune(text.substr(1)).rune);
  return std::string_view("?:-").find(text[0]) != std::string_view::npos && space_follows;
}

Traits Analyze(std::string_view text) {
  Traits traits;
  if (text.empty()) return traits;
  traits.indicators = StartsLikeSyntax(text);
  bool after_space = false;
  bool after_break = false;
  bool after_blank = true;
  for (size_t i = 0; i < text.size();) {
    const DecodedRune decoded = DecodeRune(text.substr(i));
    const size_t next = i + decoded.size;
    const bool at_edge = i == 0 || next == text.size();
    const bool breaks = IsBreak(decoded.rune);
    if (i > 0 && text[i] == ':') {
      const uint32_t following = next < text.size() ? DecodeRune(text.substr(next)).rune : ' ';
      if (following == ' ' || following == '\t' || IsBreak(following)) traits.indicators = true;
    }
    if (i > 0 && text[i] == '#' && after_blank) traits.indicators = true;
    if (!IsPrintable(decoded.rune) || (breaks && decoded.rune != '\n')) traits.special = true;
    if (breaks) {
      traits.multiline = true;
      if (at_edge) traits.edge_space = true;
      if (after_space) traits.special = true;
    } else if (text[i] == ' ') {
      if (at_edge) traits.edge_space = true;
      if (next == text.size()) traits.trailing_space = true;
      if (after_break) traits.break_space = true;
    }
    after_space = text[i] == ' ';
    after_break = breaks;
    after_blank = breaks || text[i] == ' ' || text[i] == '\t';
    i = next;
  }
  return traits;
}

bool IsSimpleKey(std::string_view key) {
  return !Analyze(key).multiline && key.size() <= kMaxSimpleKeyBytes;
}

Style ChooseStyle(std::string_view text, bool simple_key) {
  const Traits traits = Analyze(text);
  if (text.find('\n') != std::string_view::npos) {
    const bool literal = !traits.trailing_space && !traits.special && !simple_key;
    return literal ? Style::kLiteral : Style::kDoubleQuoted;
  }
  if (LooksLikeOtherThanString(text) || traits.special || traits.break_space)
    return Style::kDoubleQuoted;
  if (traits.indicators || traits.edge_space || traits.multiline) return Style::kSingleQuoted;
  return Style::kPlain;
}

void AppendYamlEscape(std::string& out, uint32_t rune) {
  constexpr std::string_view kRunes = std::string_view("\0\a\b\t\n\v\f\r\x1b\"\\", 11);
  constexpr std::string_view kLetters = "0abtnvfre\"\\";
  out.push_back('\\');
  if (rune < 0x80) {
    if (const size_t at = kRunes.find(static_cast<char>(rune)); at != std::string_view::npos) {
      out.push_back(kLetters[at]);
      return;
    }
  }
  if (rune == 0x85) {
    out.push_back('N');
  } else if (rune == 0x2028) {
    out.push_back('L');
  } else if (rune == 0x2029) {
    out.push_back('P');
  } else if (rune <= 0xFF) {
    out += fmt::format("x{:02X}", rune);
  } else if (rune <= 0xFFFF) {
    out += fmt::format("u{:04X}", rune);
  } else {
    out += fmt::format("U{:08X}", rune);
  }
}

std::vector<uint32_t> Runes(std::string_view text) {
  std::vector<uint32_t> runes;
  while (!text.empty()) {
    const DecodedRune decoded = DecodeRune(text);
    runes.push_back(decoded.rune);
    text.remove_prefix(decoded.size);
  }
  return runes;
}

bool IsLetter(uint32_t rune) {
  return (rune >= 'a' && rune <= 'z') || (rune >= 'A' && rune <= 'Z') || rune >= 0xAA;
}
bool IsDigit(uint32_t rune) { return rune >= '0' && rune <= '9'; }

// The order in which the Go library writes map keys: numbers inside names count as numbers ("a2"
// before "a10"), and letters stand after other characters, except right after a digit.
bool KeyBefore(std::string_view left, std::string_view right) {
  const std::vector<uint32_t> a = Runes(left);
  const std::vector<uint32_t> b = Runes(right);
  const size_t common = std::min(a.size(), b.size());
  const size_t i = static_cast<size_t>(
      std::mismatch(a.begin(), a.begin() + common, b.begin()).first - a.begin());
  if (i == common) return a.size() < b.size();
  const bool a_letter = IsLetter(a[i]);
  const bool b_letter = IsLetter(b[i]);
  if (a_letter && b_letter) return a[i] < b[i];
  if (a_letter || b_letter) return i > 0 && IsDigit(a[i - 1]) ? a_letter : b_letter;
  uint64_t a_number = 0;
  uint64_t b_number = 0;
  if (a[i] == '0' || b[i] == '0') {
    // Inside a number that began with another digit, zeros count.
    for (size_t j = i; j > 0 && IsDigit(a[j - 1]); --j) {
      if (a[j - 1] != '0') {
        a_number = b_number = 1;
        break;
      }
    }
  }
  size_t a_end = i;
  size_t b_end = i;
  for (; a_end < a.size() && IsDigit(a[a_end]); ++a_end)
    a_number = a_number * 10 + (a[a_end] - '0');
  for (; b_end < b.size() && IsDigit(b[b_end]); ++b_end)
    b_number = b_number * 10 + (b[b_end] - '0');
  if (a_number != b_number) return a_number < b_number;
  if (a_end != b_end) return a_end < b_end;
  return a[i] < b[i];
}

class Emitter {
 public:
  std::string Document(const Value& value) {
    if (value.empty()) {
      Scalar(value, kIndent);  // its further lines are indented also at the top
    } else {
      Node(value, -kIndent, false);
    }
    StartLine(0);
    return std::move(out_);
  }

 private:
  void StartLine(int indent) {
    if (!out_.empty() && out_.back() != '\n') out_.push_back('\n');
    out_.append(static_cast<size_t>(std::max(indent, 0)), ' ');
  }

  size_t Column() const {
    const size_t newline = out_.rfind('\n');
    const auto start =
        out_.begin() + static_cast<ptrdiff_t>(newline == std::string::npos ? 0 : newline + 1);
    return static_cast<size_t>(
        std::count_if(start, out_.end(), [](char c) { return (c & 0xC0) != 0x80; }));
  }

  // A value whose parent stands at `indent`; `inline_first`: its first line goes on after "- ".
  void Node(const Value& value, int indent, bool inline_first) {
    if (value.IsObject() && !value.empty()) {
      Mapping(value, indent + kIndent, inline_first);
    } else if (value.IsArray() && !value.empty()) {
      Sequence(value, indent + kIndent, inline_first);
    } else {
      Scalar(value, indent + kIndent);
    }
  }

  void Mapping(const Value& value, int indent, bool inline_first) {
    std::vector<const Member*> members;
    for (const Member& member : value.members()) members.push_back(&member);
    std::sort(members.begin(), members.end(),
              [](const Member* a, const Member* b) { return KeyBefore(a->first, b->first); });
    for (const Member* member : members) {
      if (!inline_first) StartLine(indent);
      inline_first = false;
      if (IsSimpleKey(member->first)) {
        Text(member->first, indent + kIndent, true);
      } else {
        out_ += "? ";
        Text(member->first, indent + kIndent, false);
        StartLine(indent);
      }
      out_.push_back(':');
      const Value& child = member->second;
      if (child.IsArray() && !child.empty()) {
        Sequence(child, indent, false);  // a list is not indented below its key
      } else if (child.IsObject() && !child.empty()) {
        Mapping(child, indent + kIndent, false);
      } else {
        out_.push_back(' ');
        Scalar(child, indent + kIndent);
      }
    }
  }

  void Sequence(const Value& value, int indent, bool inline_first) {
    for (const Value& item : value.items()) {
      if (!inline_first) StartLine(indent);
      inline_first = false;
      out_ += "- ";
      Node(item, indent, true);
    }
  }

  void Scalar(const Value& value, int indent) {
    switch (value.kind()) {
      case Kind::kString:
        Text(value.AsString(), indent, false);
        return;
      case Kind::kNumber:
        out_ += value.NumberToken();
        return;
      case Kind::kBool:
        out_ += value.AsBool() ? "true" : "false";
        return;
      case Kind::kArray:
        out_ += "[]";
        return;
      case Kind::kObject:
        out_ += "{}";
        return;
      case Kind::kNull:
        out_ += "null";
    }
  }

  void Text(std::string_view text, int indent, bool simple_key) {
    if (text.empty()) {
      out_ += "\"\"";
      return;
    }
    switch (ChooseStyle(text, simple_key)) {
      case Style::kPlain:
        return Folded(text, indent, simple_key, '\0');
      case Style::kSingleQuoted:
        return Folded(text, indent, simple_key, '\'');
      case Style::kDoubleQuoted:
        return Folded(text, indent, simple_key, '"');
      case Style::kLiteral:
        return Literal(text, indent);
    }
  }

  // One scalar in the flow of the line, folded at single spaces beyond kFoldColumn.
  void Folded(std::string_view text, int indent, bool simple_key, char quote) {
    if (quote != '\0') out_.push_back(quote);
    size_t column = Column();
    bool after_space = false;
    for (size_t i = 0; i < text.size();) {
      const DecodedRune decoded = DecodeRune(text.substr(i));
      const size_t next = i + decoded.size;
      if (text[i] == ' ') {
        const bool inside = quote == '\0' || (i > 0 && next < text.size());
        const bool space_follows = next < text.size() && text[next] == ' ';
        if (!simple_key && !after_space && column > kFoldColumn && inside &&
            (quote == '"' || !space_follows)) {
          StartLine(indent);
          column = static_cast<size_t>(indent);
          if (space_follows) out_.push_back('\\'), ++column;  // only in double quotes
        } else {
          out_.push_back(' ');
          ++column;
        }
        after_space = true;
      } else {
        const size_t before = out_.size();
        Character(text.substr(i, decoded.size), decoded.rune, quote);
        column += quote == '"' && out_[before] == '\\' ? out_.size() - before : 1;
        after_space = false;
      }
      i = next;
    }
    if (quote != '\0') out_.push_back(quote);
  }

  void Character(std::string_view bytes, uint32_t rune, char quote) {
    const bool escape = !IsPrintable(rune) || IsBreak(rune) || rune == '"' || rune == '\\';
    if (quote == '"' && escape) {
      AppendYamlEscape(out_, rune);
    } else {
      out_ += bytes;
      if (quote == '\'' && rune == '\'') out_.push_back('\'');
    }
  }

  void Literal(std::string_view text, int indent) {
    out_.push_back('|');
    if (text[0] == ' ' || text[0] == '\n') out_ += std::to_string(kIndent);
    if (text.back() != '\n') {
      out_.push_back('-');
    } else if (text.size() == 1 || text[text.size() - 2] == '\n') {
      out_.push_back('+');
    }
    out_.push_back('\n');
    while (!text.empty()) {
      const size_t newline = text.find('\n');
      const std::string_view line = text.substr(0, newline);
      if (!line.empty()) out_.append(static_cast<size_t>(indent), ' ').append(line);
      if (newline == std::string_view::npos) return;
      out_.push_back('\n');
      text.remove_prefix(newline + 1);
    }
  }

  std::string out_;
};

}  // namespace

std::string WriteYaml(const Value& value) { return Emitter().Document(value); }

}  // namespace muster::json
