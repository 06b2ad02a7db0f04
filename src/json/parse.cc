#include "json/parse.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "json/json_scanner.h"
#include "json/number.h"
#include "json/utf8.h"

namespace muster::json {

void Deduplicate(Object& members, size_t start, const KeyPath& path, ParseNotes* notes) {
  const size_t count = members.size() - start;
  if (count < 2) return;
  std::vector<size_t> order;
  if (count <= kMaxMembersWithoutIndex) {
    bool twice = false;
    for (size_t i = start + 1; i < members.size() && !twice; ++i) {
      for (size_t j = start; j < i && !twice; ++j) twice = members[i].first == members[j].first;
    }
    if (!twice) return;
  }
  order.resize(count);
  for (size_t i = 0; i < count; ++i) order[i] = start + i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return members[a].first < members[b].first; });
  std::vector<size_t> dropped;
  for (size_t i = 0; i < count;) {
    size_t last = i;
    while (last + 1 < count && members[order[last + 1]].first == members[order[i]].first) ++last;
    if (last > i) {
      if (notes != nullptr) notes->duplicate_keys.push_back(path.Join(members[order[i]].first));
      members[order[i]].second =
          std::move(members[order[last]].second);  // the last value, at the first's place
      dropped.insert(dropped.end(), order.begin() + i + 1, order.begin() + last + 1);
    }
    i = last + 1;
  }
  std::sort(dropped.begin(), dropped.end());
  for (size_t i = dropped.size(); i-- > 0;) members.erase(members.begin() + dropped[i]);
}

std::string KeyPath::Join(std::string_view last) const {
  std::string text;
  for (const Step& step : steps_) {
    if (step.key == nullptr) {
      text += fmt::format("[{}]", step.index);
    } else {
      if (!text.empty()) text += '.';
      text += *step.key;
    }
  }
  if (!text.empty()) text += '.';
  text += last;
  return text;
}

namespace {

// Ends a string's fast path: the quote, the escape, and what may not stand there.
bool EndsRun(char c) { return c == '"' || c == '\\' || static_cast<uint8_t>(c) < 0x20; }

std::optional<uint32_t> HexFour(std::string_view text) {
  if (text.size() < 4) return std::nullopt;
  uint32_t value = 0;
  for (const char c : text.substr(0, 4)) {
    value <<= 4;
    if (c >= '0' && c <= '9') {
      value |= c - '0';
    } else if (c >= 'a' && c <= 'f') {
      value |= c - 'a' + 10;
    } else if (c >= 'A' && c <= 'F') {
      value |= c - 'A' + 10;
    } else {
      return std::nullopt;
    }
  }
  return value;
}

}  // namespace

void JsonScanner::SkipSpace() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r')) {
    ++at_;
  }
}

bool JsonScanner::Fail(std::string_view what) {
  if (!error_.ok()) return false;
  const std::string_view before = text_.substr(0, std::min(at_, text_.size()));
  const size_t line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t newline = before.rfind('\n');
  const std::string_view on_line =
      newline == std::string_view::npos ? before : before.substr(newline + 1);
  const size_t column =
      1 + std::count_if(on_line.begin(), on_line.end(), [](char c) { return (c & 0xC0) != 0x80; });
  std::string found = "the end of the text";
  if (at_ < text_.size()) {
    found = fmt::format("\"{}\"", text_.substr(at_, DecodeRune(text_.substr(at_)).size));
  }
  error_ = Error(Reason::kBadRequest, "invalid JSON at line {} column {}: expected {}, found {}",
                 line, column, what, found);
  return false;
}

Result<Value> JsonScanner::Next() {
  SkipSpace();
  Value value;
  if (!Any(value)) return Error(error_);
  SkipSpace();
  return value;
}

bool JsonScanner::Any(Value& out) {
  if (at_ >= text_.size()) return Fail("a value");
  switch (text_[at_]) {
    case '{':
      return Map(out);
    case '[':
      return Sequence(out);
    case '"':
      return Text([&](std::string_view text) { out = Value(text); });
    case 't':
      return Literal("true", Value(true), out);
    case 'f':
      return Literal("false", Value(false), out);
    case 'n':
      return Literal("null", Value(), out);
    default:
      break;
  }
  const size_t length = NumberLength(text_.substr(at_));
  if (length == 0) return Fail("a value");
  out = Value::Number(text_.substr(at_, length));
  at_ += length;
  return true;
}

bool JsonScanner::Literal(std::string_view word, Value value, Value& out) {
  if (!text_.substr(at_).starts_with(word)) return Fail("a value");
  at_ += word.size();
  out = std::move(value);
  return true;
}

template <class Take>
bool JsonScanner::Text(Take take) {
  const size_t start = ++at_;
  while (at_ < text_.size() && !EndsRun(text_[at_])) ++at_;
  if (at_ < text_.size() && text_[at_] == '"') {
    take(text_.substr(start, at_ - start));
    ++at_;
    return true;
  }
  std::string decoded(text_.substr(start, at_ - start));
  while (at_ < text_.size() && text_[at_] != '"') {
    if (text_[at_] == '\\') {
      if (!Escape(decoded)) return false;
      continue;
    }
    if (EndsRun(text_[at_]))
      return Fail("a character of a string (control characters must be escaped)");
    decoded.push_back(text_[at_++]);
  }
  if (at_ >= text_.size()) return Fail("the end of a string");
  ++at_;
  take(std::string_view(decoded));
  return true;
}

bool JsonScanner::Escape(std::string& out) {
  ++at_;
  if (at_ >= text_.size()) return Fail("an escape");
  constexpr std::string_view kLetters = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  if (const size_t letter = kLetters.find(text_[at_]); letter != std::string_view::npos) {
    out.push_back(kMeanings[letter]);
    ++at_;
    return true;
  }
  if (text_[at_] != 'u') return Fail("an escape: one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX");
  std::optional<uint32_t> unit = HexFour(text_.substr(at_ + 1));
  if (!unit) return ++at_, Fail("four hexadecimal digits");
  at_ += 5;
  uint32_t rune = *unit;
  if (rune >= 0xD800 && rune < 0xDC00 && text_.substr(at_).starts_with("\\u")) {
    const std::optional<uint32_t> low = HexFour(text_.substr(at_ + 2));
    if (low && *low >= 0xDC00 && *low < 0xE000) {
      rune = 0x10000 + ((rune - 0xD800) << 10) + (*low - 0xDC00);
      at_ += 6;
    }
  }
  AppendRune(out, rune);  // a lone surrogate becomes U+FFFD
  return true;
}

bool JsonScanner::Enter() {
  if (++depth_ > max_depth_) return Fail(fmt::format("at most {} levels of nesting", max_depth_));
  ++at_;
  SkipSpace();
  return true;
}

bool JsonScanner::Map(Value& out) {
  if (!Enter()) return false;
  const size_t start = members_.size();
  if (at_ < text_.size() && text_[at_] == '}') {
    ++at_;
  } else {
    while (true) {
      std::string key;
      if (at_ >= text_.size() || text_[at_] != '"') return Fail("a key in double quotes");
      if (!Text([&](std::string_view text) { key = text; })) return false;
      SkipSpace();
      if (at_ >= text_.size() || text_[at_] != ':') return Fail("':' after a key");
      ++at_;
      SkipSpace();
      Value value;
      path_.Push(&key);
      if (!Any(value)) return false;
      path_.Pop();
      members_.emplace_back(std::move(key), std::move(value));
      SkipSpace();
      if (at_ < text_.size() && text_[at_] == '}') break;
      if (at_ >= text_.size() || text_[at_] != ',') return Fail("',' or '}'");
      ++at_;
      SkipSpace();
    }
    ++at_;
  }
  --depth_;
  Deduplicate(members_, start, path_, notes_);
  const auto first = members_.begin() + static_cast<ptrdiff_t>(start);
  out = Value(Object(std::make_move_iterator(first), std::make_move_iterator(members_.end())));
  members_.erase(first, members_.end());
  return true;
}

bool JsonScanner::Sequence(Value& out) {
  if (!Enter()) return false;
  const size_t start = items_.size();
  if (at_ < text_.size() && text_[at_] == ']') {
    ++at_;
  } else {
    while (true) {
      Value value;
      path_.Push(items_.size() - start);
      if (!Any(value)) return false;
      path_.Pop();
      items_.push_back(std::move(value));
      SkipSpace();
      if (at_ < text_.size() && text_[at_] == ']') break;
      if (at_ >= text_.size() || text_[at_] != ',') return Fail("',' or ']'");
      ++at_;
      SkipSpace();
    }
    ++at_;
  }
  --depth_;
  const auto first = items_.begin() + static_cast<ptrdiff_t>(start);
  out = Value(Array(std::make_move_iterator(first), std::make_move_iterator(items_.end())));
  items_.erase(first, items_.end());
  return true;
}

Result<Value> Parse(std::string_view text, ParseNotes* notes, int max_depth) {
  std::string clean;
  if (!IsValidUtf8(text)) {
    clean = ReplaceInvalidUtf8(text);
    text = clean;
  }
  JsonScanner scanner(text, notes, max_depth);
  ASSIGN_OR_RETURN(Value value, scanner.Next());
  if (!scanner.AtEnd()) {
    scanner.Fail("nothing after the document");
    return Error(scanner.error());
  }
  return value;
}

}  // namespace muster::json
