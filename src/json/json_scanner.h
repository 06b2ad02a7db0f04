// src/json/json_scanner.h
//
// Private to src/json: a validating JSON scanner that keeps number tokens as written and knows
// where it stands. simdjson's own parsers refuse big integers and lone surrogates, so only its
// check of UTF-8 is used (docs/adr/0003).
//
// Life cycle: one per text; reads one document after the other.
// Thread:     one owner.
// Invariants: the text is valid UTF-8; after the first error every call fails.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "json/parse.h"
#include "json/value.h"

namespace muster::json {

// Where a parser stands: keys and indexes from the root.
class KeyPath {
 public:
  KeyPath() { steps_.reserve(kOrdinaryDepth); }
  void Push(const std::string* key) { steps_.push_back({key, 0}); }
  void Push(size_t index) { steps_.push_back({nullptr, index}); }
  void Pop() { steps_.pop_back(); }
  // "spec.containers[0].name" for the key `last` of the object where the parser stands.
  std::string Join(std::string_view last) const;

 private:
  static constexpr size_t kOrdinaryDepth = 16;
  struct Step {
    const std::string* key;  // nullptr: an index
    size_t index;
  };
  std::vector<Step> steps_;
};

// Makes the keys of members[start...] unique: the last value wins. Notes each key that occurred
// twice.
void Deduplicate(Object& members, size_t start, const KeyPath& path, ParseNotes* notes);

class JsonScanner {
 public:
  JsonScanner(std::string_view text, ParseNotes* notes, int max_depth)
      : text_(text), notes_(notes), max_depth_(max_depth) {
    members_.reserve(kOpenMembers);
    items_.reserve(kOpenItems);
  }

  Result<Value> Next();  // the next document; space around it is skipped
  bool AtEnd() const { return at_ >= text_.size(); }
  size_t position() const { return at_; }
  bool Fail(std::string_view what);  // "expected WHAT"; returns false
  const Status& error() const { return error_; }

 private:
  void SkipSpace();
  bool Any(Value& out);
  bool Map(Value& out);
  bool Sequence(Value& out);
  bool Enter();
  bool Literal(std::string_view word, Value value, Value& out);
  template <class Take>
  bool Text(Take take);
  bool Escape(std::string& out);

  // Room for an ordinary object, so that its scan does not grow a vector step by step.
  static constexpr size_t kOpenMembers = 64;
  static constexpr size_t kOpenItems = 16;

  const std::string_view text_;
  ParseNotes* const notes_;
  const int max_depth_;
  size_t at_ = 0;
  int depth_ = 0;
  Status error_;
  KeyPath path_;
  // Members and items of the containers that are still open, the innermost last: each container is
  // then made in one allocation of its final size.
  Object members_;
  Array items_;
};

}  // namespace muster::json
