// src/json/member_table.h
//
// MemberTable: the members of an object while it is being built or edited, in the order in which
// they came. Finding, adding and removing one costs O(log members), where a Value is copied whole.
//
// Life cycle: for one edit; what is taken out of it ends it.
// Thread:     any one.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json/value.h"

namespace muster::json {

template <class T>
class MemberTable {
 public:
  MemberTable() = default;
  explicit MemberTable(const Object& members) {
    slots_.reserve(members.size());
    for (const auto& [key, value] : members) Append(key, T(value));
  }

  size_t size() const { return size_; }

  T* Find(std::string_view key) {
    const std::optional<size_t> position = Position(key);
    return position ? &*slots_[*position].second : nullptr;
  }

  // Replaces in place, or appends.
  void Put(std::string_view key, T value) {
    if (T* found = Find(key)) {
      *found = std::move(value);
    } else {
      Append(key, std::move(value));
    }
  }

  std::optional<T> Take(std::string_view key) {
    const std::optional<size_t> position = Position(key);
    if (!position) return std::nullopt;
    if (!positions_.empty()) positions_.erase(positions_.find(key));
    --size_;
    return std::exchange(slots_[*position].second, std::nullopt);
  }

  template <class F>
  void ForEach(F each) {
    for (auto& [key, value] : slots_) {
      if (value) each(key, *value);
    }
  }

 private:
  std::optional<size_t> Position(std::string_view key) const {
    if (!positions_.empty()) {
      const auto found = positions_.find(key);
      return found == positions_.end() ? std::nullopt : std::optional<size_t>(found->second);
    }
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].second && slots_[i].first == key) return i;
    }
    return std::nullopt;
  }

  void Append(std::string_view key, T value) {
    slots_.emplace_back(std::string(key), std::move(value));
    ++size_;
    if (!positions_.empty()) {
      positions_.emplace_hint(positions_.end(), key, slots_.size() - 1);
    } else if (slots_.size() > kMaxMembersWithoutIndex) {
      for (size_t i = 0; i < slots_.size(); ++i) {
        if (slots_[i].second) positions_.emplace(slots_[i].first, i);
      }
    }
  }

  std::vector<std::pair<std::string, std::optional<T>>> slots_;  // without a value: taken
  std::map<std::string, size_t, std::less<>> positions_;  // beyond kMaxMembersWithoutIndex slots
  size_t size_ = 0;
};

// REQUIRES: the table is not used any more.
inline Value TakeObject(MemberTable<Value>& table) {
  Object members;
  members.reserve(table.size());
  table.ForEach([&](std::string& key, Value& value) {
    members.emplace_back(std::move(key), std::move(value));
  });
  return Value(std::move(members));
}

}  // namespace muster::json
