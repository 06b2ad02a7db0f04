// src/json/value_hash.h
//
// ValueSet, ValueMap: values found by what they are. Lists from outside may have a hundred thousand
// items: comparing each with each would hold the loop for seconds.
//
// Thread: any (pure function).

#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "json/value.h"

namespace muster::json {

// Equal values have equal hashes: numbers are equal by value, members in any order.
struct ValueHash {
  size_t operator()(const Value& value) const {
    constexpr size_t kFactor = 1099511628211U;  // FNV's
    const std::hash<std::string_view> of_text;
    switch (value.kind()) {
      case Kind::kString:
        return of_text(value.AsString());
      case Kind::kNumber:
        return std::hash<double>()(value.AsDouble());
      case Kind::kArray: {
        size_t hash = 1;
        for (const Value& item : value.items()) hash = hash * kFactor + (*this)(item);
        return hash;
      }
      case Kind::kObject: {
        size_t hash = 2;
        for (const auto& [key, member] : value.members())
          hash += of_text(key) ^ ((*this)(member)*kFactor);
        return hash;
      }
      default:
        return value.AsBool() ? 1 : 0;
    }
  }
};

using ValueSet = std::unordered_set<Value, ValueHash>;
template <class T>
using ValueMap = std::unordered_map<Value, T, ValueHash>;

}  // namespace muster::json
