// src/json/value.h
//
// Value: an immutable JSON tree. A copy costs one reference count; an update returns a new tree that shares every
// branch that did not change.
//
// Life cycle: a value type; strings, arrays and objects are shared and never change after they are made.
// Thread:     any (immutable).
// Invariants: object members keep the order in which they were written, keys are unique (the parser reports
//             duplicates and the last one wins, as in Go); a number keeps its digits as written until it is asked for.

#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::json {

enum class Kind : uint8_t { kNull, kBool, kNumber, kString, kArray, kObject };

class Value;
using Member = std::pair<std::string, Value>;
using Array = std::vector<Value>;
using Object = std::vector<Member>;

class Value {
 public:
  Value() = default;  // null
  Value(std::nullptr_t) {}                 // NOLINT(google-explicit-constructor): literals read as JSON
  Value(bool value);                       // NOLINT
  Value(int value);                        // NOLINT
  Value(int64_t value);                    // NOLINT
  Value(uint64_t value);                   // NOLINT
  Value(double value);                     // NOLINT: shortest form that reads back; NaN and infinities become null
  Value(const char* value);                // NOLINT
  Value(std::string value);                // NOLINT
  Value(std::string_view value);           // NOLINT
  Value(Array value);                      // NOLINT
  Value(Object value);                     // NOLINT: REQUIRES unique keys
  // A number by its digits, e.g. "1e400". REQUIRES: a JSON number token.
  static Value Number(std::string token);

  Kind kind() const { return kind_; }
  bool IsNull() const { return kind_ == Kind::kNull; }
  bool IsBool() const { return kind_ == Kind::kBool; }
  bool IsNumber() const { return kind_ == Kind::kNumber; }
  bool IsString() const { return kind_ == Kind::kString; }
  bool IsArray() const { return kind_ == Kind::kArray; }
  bool IsObject() const { return kind_ == Kind::kObject; }

  // Reading never fails: a missing key, a wrong index or a value of another kind gives null / the default.
  const Value& operator[](std::string_view key) const;
  const Value& operator[](const char* key) const { return (*this)[std::string_view(key)]; }
  const Value& At(size_t index) const;
  const Value& Path(std::initializer_list<std::string_view> keys) const;
  const Value* Find(std::string_view key) const;  // nullptr if absent; present nulls are found
  bool Has(std::string_view key) const { return Find(key) != nullptr; }

  const Array& items() const;      // empty unless an array
  const Object& members() const;   // empty unless an object
  size_t size() const;             // of an array or object, else 0
  bool empty() const { return size() == 0; }

  std::string_view AsString(std::string_view otherwise = {}) const;  // lives as long as the tree
  std::string Str(std::string_view otherwise = {}) const { return std::string(AsString(otherwise)); }
  bool AsBool(bool otherwise = false) const;
  int64_t AsInt(int64_t otherwise = 0) const;    // exact integers only, 1e3 included; else `otherwise`
  double AsDouble(double otherwise = 0) const;
  std::optional<int64_t> Int() const;
  std::string_view NumberToken() const;          // digits as written; "" unless a number

  // Updates: a changed copy. On a value that is not an object (array), Set (Append) starts from an empty one.
  Value Set(std::string_view key, Value value) const;
  Value Remove(std::string_view key) const;
  Value SetPath(std::initializer_list<std::string_view> keys, Value value) const;
  Value RemovePath(std::initializer_list<std::string_view> keys) const;
  Value Append(Value value) const;
  Value SetAt(size_t index, Value value) const;  // REQUIRES: index < size()

  // Deep equality: object order does not matter, numbers compare by value (1 == 1.0 == 1e0).
  bool operator==(const Value& other) const;

 private:
  Kind kind_ = Kind::kNull;
  bool bool_ = false;
  // kNumber, kString: std::string; kArray: Array; kObject: Object. Null for the others.
  std::shared_ptr<const void> data_;
};

// Obj({{"kind", "Pod"}, {"count", 3}}), List({1, 2}): trees that read as JSON.
Value Obj(std::initializer_list<Member> members = {});
Value List(std::initializer_list<Value> items = {});

// {"a", "b"} as a JSON array of strings, and {k: v} maps of strings: both ways.
Value Strings(const std::vector<std::string>& strings);
std::vector<std::string> ToStrings(const Value& array);

}  // namespace muster::json
