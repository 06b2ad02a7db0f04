// src/schema/defaulting/edit.h
//
// Small steps of defaulting on an object: give an absent member a value, change a member, change
// every item.
//
// Thread: any (pure functions). An object that has everything already comes back sharing its
// storage.

#pragma once

#include <string_view>
#include <utility>

#include "json/value.h"

namespace muster::schema {

// Absent, null or "": what Go's defaulting takes for "not set" in a field without a pointer.
inline bool IsUnset(const json::Value& value) {
  return value.IsNull() || (value.IsString() && value.AsString().empty());
}

inline void SetDefault(json::Value& object, std::string_view key, json::Value value) {
  if (IsUnset(object[key])) object = std::move(object).Set(key, std::move(value));
}

// For fields with a pointer: "" and 0 are values.
inline void SetIfAbsent(json::Value& object, std::string_view key, json::Value value) {
  if (object[key].IsNull()) object = std::move(object).Set(key, std::move(value));
}

// For int32 fields without a pointer: 0 means "not set".
inline void SetDefaultNumber(json::Value& object, std::string_view key, int64_t value) {
  if (value != 0 && object[key].AsInt() == 0) object = std::move(object).Set(key, value);
}

// object[key] = change(object[key]) if the member is there.
template <class Change>
void EditMember(json::Value& object, std::string_view key, Change change) {
  const json::Value* member = object.Find(key);
  if (member == nullptr || member->IsNull()) return;
  const json::Value before = *member;
  json::Value after = change(before);
  if (!after.SameAs(before)) object = std::move(object).Set(key, std::move(after));
}

// The same for every item of the list object[key].
template <class Change>
void EditItems(json::Value& object, std::string_view key, Change change) {
  EditMember(object, key, [&](const json::Value& list) {
    json::Array items;
    bool differs = false;
    for (const json::Value& item : list.items()) {
      items.push_back(change(item));
      differs = differs || !items.back().SameAs(item);
    }
    return differs ? json::Value(std::move(items)) : list;
  });
}

}  // namespace muster::schema
