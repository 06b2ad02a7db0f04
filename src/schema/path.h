// src/schema/path.h
//
// Path: where a value stands in an object ("spec.containers[0].env[1].name"), built while a tree is
// walked and turned into text only when something is wrong there.
//
// Life cycle: on the stack of the walk. A child points to its parent and must not outlive it: keep
//             one step per variable, and chain further steps only inside one expression.
// Thread:     that of the walk.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace muster::schema {

class Path {
 public:
  Path() = default;  // the object itself
  explicit Path(std::string_view name) : name_(name), step_(Step::kChild) {}

  Path Child(std::string_view name) const { return Path(this, Step::kChild, name, 0); }
  Path Index(size_t index) const { return Path(this, Step::kIndex, {}, index); }
  Path Key(std::string_view key) const {
    return Path(this, Step::kKey, key, 0);
  }  // of a map: "data[key]"

  bool IsRoot() const { return parent_ == nullptr && step_ == Step::kRoot; }
  std::string ToString() const {
    std::string text;
    AppendTo(text, true);
    return text;
  }
  // Fields only, without indexes and keys: how Go's decoder names a place.
  std::string FieldNames() const {
    std::string text;
    AppendTo(text, false);
    return text;
  }

 private:
  enum class Step : uint8_t { kRoot, kChild, kIndex, kKey };

  Path(const Path* parent, Step step, std::string_view name, size_t index)
      : parent_(parent), name_(name), index_(index), step_(step) {}

  void AppendTo(std::string& text, bool with_indexes) const {
    if (parent_ != nullptr) parent_->AppendTo(text, with_indexes);
    if (step_ == Step::kChild) {
      if (!text.empty()) text += '.';
      text += name_;
    } else if (step_ != Step::kRoot && with_indexes) {
      text += '[';
      if (step_ == Step::kIndex) {
        text += std::to_string(index_);
      } else {
        text += name_;
      }
      text += ']';
    }
  }

  const Path* parent_ = nullptr;
  std::string_view name_;
  size_t index_ = 0;
  Step step_ = Step::kRoot;
};

}  // namespace muster::schema
