#include "json/projection.h"

#include <algorithm>
#include <utility>

namespace muster::json {

namespace {

constexpr std::string_view kMetadata = "metadata";

const Fields& WholeFields() {
  static const Fields whole = Fields::Whole();
  return whole;
}

// As boost::hash_combine, in 64 bits.
uint64_t Mix(uint64_t seed, uint64_t next) {
  return seed ^ (next + 0x9e3779b97f4a7c15U + (seed << 12) + (seed >> 4));
}

uint64_t HashText(Kind kind, std::string_view text) {
  return Mix(static_cast<uint64_t>(kind), std::hash<std::string_view>()(text));
}

}  // namespace

Fields::Fields(std::initializer_list<std::initializer_list<std::string_view>> paths) {
  for (const std::initializer_list<std::string_view>& path : paths) {
    Fields one = Whole();
    for (auto key = std::rbegin(path); key != std::rend(path); ++key) {
      Fields above;
      above.members_.emplace(*key, std::move(one));
      one = std::move(above);
    }
    Add(one);
  }
}

Fields Fields::Whole() {
  Fields fields;
  fields.whole_ = true;
  return fields;
}

Fields& Fields::Add(const Fields& other) {
  if (whole_) return *this;
  if (other.whole_) {
    *this = Whole();
    return *this;
  }
  for (const auto& [key, fields] : other.members_) members_[key].Add(fields);
  return *this;
}

bool Fields::Covers(const Fields& other) const {
  if (whole_) return true;
  if (other.whole_) return false;
  return std::ranges::all_of(other.members_, [this](const auto& entry) {
    const auto mine = members_.find(entry.first);
    return mine != members_.end() && mine->second.Covers(entry.second);
  });
}

Value Fields::Project(const Value& value) const { return SharedValues().Project(value, *this); }

Value SharedValues::Project(const Value& object, const Fields& fields) {
  if (slots_.empty()) slots_.resize(kMaxSharedValues);
  return Keep(object, fields, false).value;
}

// What is kept of `value`, with a hash of its content.
SharedValues::Hashed SharedValues::Keep(const Value& value, const Fields& fields, bool share) {
  Hashed kept;
  switch (value.kind()) {
    case Kind::kNull:
      return kept;
    case Kind::kBool:
      return {value, HashText(Kind::kBool, value.AsBool() ? "t" : "f")};
    case Kind::kNumber:
      return {value, HashText(Kind::kNumber, value.NumberToken())};
    case Kind::kString:
      kept = {value, HashText(Kind::kString, value.AsString())};
      break;
    case Kind::kArray:
      kept = KeepArray(value, fields);
      break;
    case Kind::kObject:
      kept = KeepObject(value, fields);
      break;
  }
  if (share) Share(kept);
  return kept;
}

SharedValues::Hashed SharedValues::KeepArray(const Value& value, const Fields& fields) {
  uint64_t hash = static_cast<uint64_t>(Kind::kArray);
  Array items;
  items.reserve(value.size());
  for (const Value& item : value.items()) {
    Hashed kept = Keep(item, fields, true);
    hash = Mix(hash, kept.hash);
    items.push_back(std::move(kept.value));
  }
  return {Value(std::move(items)), hash};
}

SharedValues::Hashed SharedValues::KeepObject(const Value& value, const Fields& fields) {
  const auto wanted = [&fields](std::string_view key) -> const Fields* {
    if (fields.whole_) return &WholeFields();
    const auto found = fields.members_.find(key);
    return found == fields.members_.end() ? nullptr : &found->second;
  };
  const auto count = std::ranges::count_if(
      value.members(), [&](const Member& member) { return wanted(member.first) != nullptr; });
  uint64_t hash = static_cast<uint64_t>(Kind::kObject);
  Object members;
  members.reserve(static_cast<size_t>(count));  // exactly: most trees live long
  for (const auto& [key, member] : value.members()) {
    const Fields* below = wanted(key);
    if (below == nullptr) continue;
    Hashed kept = Keep(member, *below, key != kMetadata);
    hash = Mix(Mix(hash, HashText(Kind::kString, key)), kept.hash);
    members.emplace_back(key, std::move(kept.value));
  }
  return {Value(std::move(members)), hash};
}

void SharedValues::Share(Hashed& kept) {
  Slot& slot = slots_[kept.hash % slots_.size()];
  if (slot.hash == kept.hash && slot.value == kept.value) {
    kept.value = slot.value;
  } else {
    slot = {kept.hash, kept.value};
  }
}

}  // namespace muster::json
