#include "json/value.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <memory>

#include "base/check.h"
#include "json/number.h"

namespace muster::json {

// Storage shared by copies. The kind lives in each Value, so that reading it touches no other cache
// line.
struct Rep {
  mutable std::atomic<uint32_t> references{1};
  uint32_t size = 0;  // of a text
};

namespace {

struct TextRep : Rep {
  char* text() { return reinterpret_cast<char*>(this + 1); }
  const char* text() const { return reinterpret_cast<const char*>(this + 1); }
};

struct ArrayRep : Rep {
  Array items;
};

struct ObjectRep : Rep {
  Object members;
  std::vector<uint32_t>
      by_key;  // positions in `members` in key order; only beyond kMaxMembersWithoutIndex

  void Index() {
    by_key.clear();
    if (members.size() <= kMaxMembersWithoutIndex) return;
    by_key.resize(members.size());
    for (uint32_t i = 0; i < by_key.size(); ++i) by_key[i] = i;
    std::sort(by_key.begin(), by_key.end(),
              [this](uint32_t a, uint32_t b) { return members[a].first < members[b].first; });
  }

  size_t Position(std::string_view key) const {  // members.size() if absent
    if (by_key.empty()) {
      for (size_t i = 0; i < members.size(); ++i) {
        if (members[i].first == key) return i;
      }
      return members.size();
    }
    const auto at = LowerBound(key);
    return at != by_key.end() && members[*at].first == key ? *at : members.size();
  }

  // Adds or replaces; keeps the index in O(members).
  void Put(std::string_view key, Value value) {
    const size_t position = Position(key);
    if (position < members.size()) {
      members[position].second = std::move(value);
      return;
    }
    if (!by_key.empty()) {
      const auto at = LowerBound(key);
      by_key.insert(by_key.begin() + (at - by_key.begin()), static_cast<uint32_t>(members.size()));
    }
    members.emplace_back(std::string(key), std::move(value));
    if (by_key.empty()) Index();
  }

  std::vector<uint32_t>::const_iterator LowerBound(std::string_view key) const {
    return std::lower_bound(
        by_key.begin(), by_key.end(), key,
        [this](uint32_t position, std::string_view k) { return members[position].first < k; });
  }
};

const Value kNullValue;
const Array kNoItems;
const Object kNoMembers;

const TextRep* NewText(std::string_view text) {
  void* memory = std::malloc(sizeof(TextRep) + text.size());
  CHECK(memory != nullptr);
  auto* rep = new (memory) TextRep;
  rep->size = static_cast<uint32_t>(text.size());
  if (!text.empty()) std::memcpy(rep->text(), text.data(), text.size());
  return rep;
}

void Release(Kind kind, const Rep* rep) {
  if (rep == nullptr || rep->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  switch (kind) {
    case Kind::kArray:
      delete static_cast<const ArrayRep*>(rep);
      return;
    case Kind::kObject:
      delete static_cast<const ObjectRep*>(rep);
      return;
    default:
      std::free(const_cast<Rep*>(rep));
  }
}

const ObjectRep* AsObject(const Rep* rep) { return static_cast<const ObjectRep*>(rep); }
const ArrayRep* AsArray(const Rep* rep) { return static_cast<const ArrayRep*>(rep); }

}  // namespace

Value::Value(bool value) : kind_(Kind::kBool), inline_size_(value ? 1 : 0) {}
Value::Value(int value) : Value(static_cast<int64_t>(value)) {}

Value::Value(int64_t value) {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.begin(), digits.end(), value).ptr;
  SetNumber(std::string_view(digits.begin(), end));
}

Value::Value(uint64_t value) {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.begin(), digits.end(), value).ptr;
  SetNumber(std::string_view(digits.begin(), end));
}

Value::Value(double value) {
  if (std::isfinite(value)) SetNumber(FormatDouble(value));
}

Value::Value(const char* value) : Value(std::string_view(value)) {}
Value::Value(const std::string& value) : Value(std::string_view(value)) {}
Value::Value(std::string_view value) { Adopt(Kind::kString, NewText(value)); }

Value::Value(Array value) {
  auto rep = std::make_unique<ArrayRep>();
  rep->items = std::move(value);
  Adopt(Kind::kArray, rep.release());
}

Value::Value(Object value) {
  auto rep = std::make_unique<ObjectRep>();
  rep->members = std::move(value);
  rep->Index();
  Adopt(Kind::kObject, rep.release());
}

Value Value::Number(std::string_view token) {
  Value value;
  value.SetNumber(token);
  return value;
}

void Value::SetNumber(std::string_view token) {
  CHECK(!token.empty());
  if (token.size() > kInlineBytes) {
    Adopt(Kind::kNumber, NewText(token));
    return;
  }
  kind_ = Kind::kNumber;
  inline_size_ = static_cast<uint8_t>(token.size());
  std::memcpy(bytes_, token.data(), token.size());
}

Value::Value(const Value& other) noexcept : kind_(other.kind_), inline_size_(other.inline_size_) {
  std::memcpy(bytes_, other.bytes_, kInlineBytes);
  if (const Rep* shared = rep()) shared->references.fetch_add(1, std::memory_order_relaxed);
}

Value::Value(Value&& other) noexcept : kind_(other.kind_), inline_size_(other.inline_size_) {
  std::memcpy(bytes_, other.bytes_, kInlineBytes);
  other.kind_ = Kind::kNull;
  other.inline_size_ = 0;
}

Value& Value::operator=(const Value& other) noexcept {
  Value copy(other);
  return *this = std::move(copy);
}

Value& Value::operator=(Value&& other) noexcept {
  if (this == &other) return *this;
  const Kind old_kind = kind_;
  const Rep* old = rep();
  kind_ = other.kind_;
  inline_size_ = other.inline_size_;
  std::memcpy(bytes_, other.bytes_, kInlineBytes);
  other.kind_ = Kind::kNull;
  other.inline_size_ = 0;
  Release(old_kind, old);  // last: it may hold `other`
  return *this;
}

Value::~Value() { Release(kind_, rep()); }

const Value& Value::operator[](std::string_view key) const {
  const Value* found = Find(key);
  return found == nullptr ? kNullValue : *found;
}

const Value& Value::At(size_t index) const {
  const Array& all = items();
  return index < all.size() ? all[index] : kNullValue;
}

const Value& Value::Path(std::initializer_list<std::string_view> keys) const {
  const Value* at = this;
  for (const std::string_view key : keys) at = &(*at)[key];
  return *at;
}

const Value* Value::Find(std::string_view key) const {
  if (kind_ != Kind::kObject) return nullptr;
  const ObjectRep* object = AsObject(rep());
  const size_t position = object->Position(key);
  return position < object->members.size() ? &object->members[position].second : nullptr;
}

const Array& Value::items() const {
  return kind_ == Kind::kArray ? AsArray(rep())->items : kNoItems;
}
const Object& Value::members() const {
  return kind_ == Kind::kObject ? AsObject(rep())->members : kNoMembers;
}

size_t Value::size() const {
  if (kind_ == Kind::kArray) return items().size();
  return kind_ == Kind::kObject ? members().size() : 0;
}

std::string_view Value::AsString(std::string_view otherwise) const {
  if (kind_ != Kind::kString) return otherwise;
  const auto* text = static_cast<const TextRep*>(rep());
  return {text->text(), text->size};
}

bool Value::AsBool(bool otherwise) const {
  return kind_ == Kind::kBool ? inline_size_ != 0 : otherwise;
}
int64_t Value::AsInt(int64_t otherwise) const { return Int().value_or(otherwise); }

double Value::AsDouble(double otherwise) const {
  return kind_ == Kind::kNumber ? TokenToDouble(NumberToken()) : otherwise;
}

std::optional<int64_t> Value::Int() const {
  if (kind_ != Kind::kNumber) return std::nullopt;
  return TokenToInt(NumberToken());
}

std::string_view Value::NumberToken() const {
  if (kind_ != Kind::kNumber) return {};
  if (inline_size_ != 0) return {bytes_, inline_size_};
  const auto* text = static_cast<const TextRep*>(rep());
  return {text->text(), text->size};
}

bool Value::SameAs(const Value& other) const {
  if (kind_ != other.kind_ || inline_size_ != other.inline_size_) return false;
  if (kind_ == Kind::kNull || kind_ == Kind::kBool) return true;
  if (inline_size_ != 0) return NumberToken() == other.NumberToken();
  return rep() == other.rep();
}

Rep* Value::Unshared() const {
  const Rep* shared = rep();
  if (shared == nullptr || shared->references.load(std::memory_order_acquire) != 1) return nullptr;
  return const_cast<Rep*>(shared);
}

Value Value::Set(std::string_view key, Value value) const& {
  auto changed = std::make_unique<ObjectRep>();
  if (kind_ == Kind::kObject) {
    const ObjectRep* object = AsObject(rep());
    changed->members.reserve(object->members.size() + 1);
    changed->members = object->members;
    changed->by_key = object->by_key;
  }
  changed->Put(key, std::move(value));
  Value result;
  result.Adopt(Kind::kObject, changed.release());
  return result;
}

Value Value::Set(std::string_view key, Value value) && {
  Rep* own = kind_ == Kind::kObject ? Unshared() : nullptr;
  if (own == nullptr) return std::as_const(*this).Set(key, std::move(value));
  static_cast<ObjectRep*>(own)->Put(key, std::move(value));
  return std::move(*this);
}

Value Value::Remove(std::string_view key) const {
  if (!Has(key)) return *this;
  Object kept;
  kept.reserve(members().size() - 1);
  for (const Member& member : members()) {
    if (member.first != key) kept.push_back(member);
  }
  return Value(std::move(kept));
}

// In place as far down as nobody shares: a member is taken out, changed and put back.
Value Value::SetBelow(const std::string_view* key, const std::string_view* end, Value value) && {
  if (key + 1 == end) return std::move(*this).Set(*key, std::move(value));
  Value child;
  auto* own = kind_ == Kind::kObject ? static_cast<ObjectRep*>(Unshared()) : nullptr;
  if (own == nullptr) {
    child = (*this)[*key];
  } else if (const size_t at = own->Position(*key); at < own->members.size()) {
    child = std::move(own->members[at].second);
  }
  child = std::move(child).SetBelow(key + 1, end, std::move(value));
  return std::move(*this).Set(*key, std::move(child));
}

Value Value::SetPath(std::initializer_list<std::string_view> keys, Value value) && {
  CHECK(keys.size() > 0);
  return std::move(*this).SetBelow(keys.begin(), keys.end(), std::move(value));
}

Value Value::SetPath(std::initializer_list<std::string_view> keys, Value value) const& {
  CHECK(keys.size() > 0);
  std::vector<const Value*> parents = {this};
  for (const std::string_view* key = keys.begin(); key + 1 < keys.end(); ++key) {
    parents.push_back(&(*parents.back())[*key]);
  }
  for (size_t i = keys.size(); i-- > 0;) value = parents[i]->Set(keys.begin()[i], std::move(value));
  return value;
}

Value Value::RemovePath(std::initializer_list<std::string_view> keys) const {
  CHECK(keys.size() > 0);
  std::vector<const Value*> parents = {this};
  for (const std::string_view* key = keys.begin(); key + 1 < keys.end(); ++key) {
    parents.push_back(&(*parents.back())[*key]);
  }
  const std::string_view last = keys.begin()[keys.size() - 1];
  if (!parents.back()->Has(last)) return *this;
  Value value = parents.back()->Remove(last);
  for (size_t i = keys.size() - 1; i-- > 0;)
    value = parents[i]->Set(keys.begin()[i], std::move(value));
  return value;
}

Value Value::Append(Value value) const& {
  Array changed;
  changed.reserve(items().size() + 1);
  changed = items();
  changed.push_back(std::move(value));
  return Value(std::move(changed));
}

Value Value::Append(Value value) && {
  Rep* own = kind_ == Kind::kArray ? Unshared() : nullptr;
  if (own == nullptr) return std::as_const(*this).Append(std::move(value));
  static_cast<ArrayRep*>(own)->items.push_back(std::move(value));
  return std::move(*this);
}

Value Value::SetAt(size_t index, Value value) const {
  CHECK(index < items().size());
  Array changed = items();
  changed[index] = std::move(value);
  return Value(std::move(changed));
}

bool Value::operator==(const Value& other) const {
  if (kind_ != other.kind_) return false;
  if (SameAs(other)) return true;
  switch (kind_) {
    case Kind::kNull:
      return true;
    case Kind::kBool:
      return inline_size_ == other.inline_size_;
    case Kind::kNumber:
      return SameNumber(NumberToken(), other.NumberToken());
    case Kind::kString:
      return AsString() == other.AsString();
    case Kind::kArray:
      return items() == other.items();
    case Kind::kObject:
      break;
  }
  const Object& mine = members();
  const Object& theirs = other.members();
  if (mine.size() != theirs.size()) return false;
  for (size_t i = 0; i < mine.size(); ++i) {
    const bool same_place = mine[i].first == theirs[i].first;
    const Value* value = same_place ? &theirs[i].second : other.Find(mine[i].first);
    if (value == nullptr || !(mine[i].second == *value)) return false;
  }
  return true;
}

Value Obj(std::initializer_list<Member> members) { return Value(Object(members)); }
Value List(std::initializer_list<Value> items) { return Value(Array(items)); }

Value Strings(const std::vector<std::string>& strings) {
  return Value(Array(strings.begin(), strings.end()));
}

std::vector<std::string> ToStrings(const Value& array) {
  std::vector<std::string> strings;
  strings.reserve(array.size());
  for (const Value& item : array.items()) strings.push_back(item.Str());
  return strings;
}

Value SortKeys(const Value& value) {
  if (value.IsArray()) {
    Array items;
    items.reserve(value.size());
    for (const Value& item : value.items()) items.push_back(SortKeys(item));
    return Value(std::move(items));
  }
  if (!value.IsObject()) return value;
  Object members;
  members.reserve(value.size());
  for (const Member& member : value.members())
    members.emplace_back(member.first, SortKeys(member.second));
  std::sort(members.begin(), members.end(),
            [](const Member& a, const Member& b) { return a.first < b.first; });
  return Value(std::move(members));
}

}  // namespace muster::json
