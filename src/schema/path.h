// src/schema/path.h
//
// Path: where a value stands in an object ("spec.containers[0].env[1].name"), built while a tree is
// walked and turned into text only when something is wrong there.
//
// Life cycle: on the stack of the walk. A child points to its parent and to its name and must not
//             outlive them: one step per variable; further steps, and names that were just made,
//             only inside one expression. The compiler sees to it: a Path is not copied, and a step
//             from what is temporary is a PassingPath, which no variable of type Path takes.
// Thread:     that of the walk.

#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace muster::schema {

class PassingPath;

// The name of a step was made in the same expression and is gone after it.
template <typename Name>
concept TemporaryName = std::same_as<Name, std::string>;  // deduced so from an rvalue only

class Path {
 public:
  Path() = default;  // the object itself
  explicit Path(std::string_view name) : name_(name), step_(Step::kChild) {}
  template <TemporaryName Name>
  explicit Path(Name&& name) = delete;
  Path(const Path&) = delete;
  Path& operator=(const Path&) = delete;

  Path Child(std::string_view name) const& { return Path(this, Step::kChild, name, 0); }
  Path Index(size_t index) const& { return Path(this, Step::kIndex, {}, index); }
  // Of a map: "data[key]".
  Path Key(std::string_view key) const& { return Path(this, Step::kKey, key, 0); }

  PassingPath Child(std::string_view name) const&&;
  PassingPath Index(size_t index) const&&;
  PassingPath Key(std::string_view key) const&&;
  template <TemporaryName Name>
  PassingPath Child(Name&& name) const;
  template <TemporaryName Name>
  PassingPath Key(Name&& key) const;

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
  friend class PassingPath;
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

// A path that is true until the end of the expression that it was made in.
class PassingPath : public Path {
 private:
  friend class Path;
  PassingPath(const Path* parent, Step step, std::string_view name, size_t index)
      : Path(parent, step, name, index) {}
};

inline PassingPath Path::Child(std::string_view name) const&& {
  return PassingPath(this, Step::kChild, name, 0);
}
inline PassingPath Path::Index(size_t index) const&& {
  return PassingPath(this, Step::kIndex, {}, index);
}
inline PassingPath Path::Key(std::string_view key) const&& {
  return PassingPath(this, Step::kKey, key, 0);
}
template <TemporaryName Name>
PassingPath Path::Child(Name&& name) const {
  return PassingPath(this, Step::kChild, name, 0);
}
template <TemporaryName Name>
PassingPath Path::Key(Name&& key) const {
  return PassingPath(this, Step::kKey, key, 0);
}

}  // namespace muster::schema
