// src/json/value.h
//
// Value: an immutable JSON tree. A copy costs one reference count; an update returns a new tree
// that shares every branch that did not change.
//
// Life cycle: a value type of 16 bytes; strings, arrays and objects are shared and never change
//             after they are made.
// Thread:     any (immutable).
// Invariants: object members keep the order in which they were written, keys are unique (the parser
//             reports duplicates and the last one wins, as in Go); a number keeps its digits as
//             written until it is asked for.

#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::json {

enum class Kind : uint8_t { kNull, kBool, kNumber, kString, kArray, kObject };

class Value;
struct Rep;  // shared storage, in value.cc
using Member = std::pair<std::string, Value>;
using Array = std::vector<Value>;
using Object = std::vector<Member>;

// An object with more members than this also keeps a sorted index, so that Find is O(log members).
inline constexpr size_t kMaxMembersWithoutIndex = 24;

class Value {
 public:
  Value() = default;        // null
  Value(std::nullptr_t) {}  // NOLINT(google-explicit-constructor): literals read as JSON
  Value(bool value);        // NOLINT
  Value(int value);         // NOLINT
  Value(int64_t value);     // NOLINT
  Value(uint64_t value);    // NOLINT
  Value(double value);      // NOLINT: shortest form that reads back; NaN and infinities become null
  Value(const char* value);         // NOLINT
  Value(const std::string& value);  // NOLINT
  Value(std::string_view value);    // NOLINT
  Value(Array value);               // NOLINT
  Value(Object value);              // NOLINT: REQUIRES unique keys
  // A number by its digits, e.g. "1e400". REQUIRES: a JSON number token.
  static Value Number(std::string_view token);

  Value(const Value& other) noexcept;
  Value(Value&& other) noexcept;
  Value& operator=(const Value& other) noexcept;
  Value& operator=(Value&& other) noexcept;
  ~Value();

  Kind kind() const { return kind_; }
  bool IsNull() const { return kind_ == Kind::kNull; }
  bool IsBool() const { return kind_ == Kind::kBool; }
  bool IsNumber() const { return kind_ == Kind::kNumber; }
  bool IsString() const { return kind_ == Kind::kString; }
  bool IsArray() const { return kind_ == Kind::kArray; }
  bool IsObject() const { return kind_ == Kind::kObject; }

  // Reading never fails: a missing key, a wrong index or a value of another kind gives null / the
  // default.
  const Value& operator[](std::string_view key) const;
  const Value& operator[](const char* key) const { return (*this)[std::string_view(key)]; }
  const Value& At(size_t index) const;
  const Value& Path(std::initializer_list<std::string_view> keys) const;
  const Value* Find(std::string_view key) const;  // nullptr if absent; present nulls are found
  bool Has(std::string_view key) const { return Find(key) != nullptr; }

  const Array& items() const;     // empty unless an array
  const Object& members() const;  // empty unless an object
  size_t size() const;            // of an array or object, else 0
  bool empty() const { return size() == 0; }

  std::string_view AsString(std::string_view otherwise = {}) const;  // lives as long as the tree
  std::string Str(std::string_view otherwise = {}) const {
    return std::string(AsString(otherwise));
  }
  bool AsBool(bool otherwise = false) const;
  int64_t AsInt(
      int64_t otherwise = 0) const;  // exact integers only, 1e3 included; else `otherwise`
  double AsDouble(double otherwise = 0) const;  // beyond double's range: an infinity, or zero
  std::optional<int64_t> Int() const;
  // Digits as written; "" unless a number. Lives as long as this very Value (short numbers are kept
  // inside it).
  std::string_view NumberToken() const;
  // The same storage: true means equal, and costs nothing; false says nothing.
  bool SameAs(const Value& other) const;

  // Updates: a changed copy. On a value that is not an object (array), Set (Append) starts from an
  // empty one. A value given up with std::move changes in place when nobody else shares it: `v =
  // std::move(v).Set("a", 1)`.
  Value Set(std::string_view key, Value value) const&;
  Value Set(std::string_view key, Value value) &&;
  Value Remove(std::string_view key) const;
  Value SetPath(std::initializer_list<std::string_view> keys, Value value) const&;
  Value SetPath(std::initializer_list<std::string_view> keys, Value value) &&;
  Value RemovePath(std::initializer_list<std::string_view> keys) const;
  Value Append(Value value) const&;
  Value Append(Value value) &&;
  Value SetAt(size_t index, Value value) const;  // REQUIRES: index < size()

  // Deep equality: object order does not matter, numbers compare by value (1 == 1.0 == 1e0).
  bool operator==(const Value& other) const;

 private:
  static constexpr size_t kInlineBytes = 14;

  const Rep* rep() const {  // nullptr for null, booleans and numbers kept inside
    const Rep* pointer = nullptr;
    if (kind_ >= Kind::kNumber && inline_size_ == 0)
      std::memcpy(&pointer, bytes_ + 6, sizeof pointer);
    return pointer;
  }
  void Adopt(Kind kind, const Rep* rep) {
    kind_ = kind;
    inline_size_ = 0;
    std::memcpy(bytes_ + 6, &rep, sizeof rep);
  }
  void SetNumber(std::string_view token);
  Value SetBelow(const std::string_view* key, const std::string_view* end, Value value) &&;
  Rep* Unshared() const;  // this value's storage if nobody else holds it, else nullptr

  Kind kind_ = Kind::kNull;
  uint8_t inline_size_ = 0;  // of a number's token kept in bytes_; a boolean's value
  char bytes_[kInlineBytes] =
      {};  // a short number token, or at offset 6 the pointer to shared storage
};
static_assert(sizeof(Value) == 16);

// Obj({{"kind", "Pod"}, {"count", 3}}), List({1, 2}): trees that read as JSON.
Value Obj(std::initializer_list<Member> members = {});
Value List(std::initializer_list<Value> items = {});

// {"a", "b"} as a JSON array of strings, and {k: v} maps of strings: both ways.
Value Strings(const std::vector<std::string>& strings);
std::vector<std::string> ToStrings(const Value& array);

// The same tree with the members of every object in byte order of their keys: what Go prints for a
// map.
Value SortKeys(const Value& value);

}  // namespace muster::json
