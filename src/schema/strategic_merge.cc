#include "schema/strategic_merge.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "json/member_table.h"
#include "json/value_hash.h"
#include "json/write.h"

namespace muster::schema {
namespace {

using json::Array;
using json::MemberTable;
using json::Value;

constexpr std::string_view kDirective = "$patch";
constexpr std::string_view kRetainKeys = "$retainKeys";
constexpr std::string_view kSetElementOrder = "$setElementOrder/";
constexpr std::string_view kDeleteFromList = "$deleteFromPrimitiveList/";

Result<Value> MergeMap(const Schema* schema, const Value& original, const Value& patch);

ErrorStatus BadPatch(std::string_view what) {
  return Error(Reason::kBadRequest, "invalid strategic merge patch: {}", what);
}

// How a list merges: by a key, as a set of scalars, or not at all.
struct ListRule {
  bool merges = false;
  std::string_view key;  // "" for scalars
  const Schema* items = nullptr;
};

ListRule RuleOf(const Field* field) {
  if (field == nullptr || !field->patch_merge) return {};
  return {true, field->patch_merge_key, field->schema->items};
}

const Field* FieldOf(const Schema* schema, std::string_view key) {
  return schema != nullptr && schema->type == Type::kObject ? schema->Find(key) : nullptr;
}

const Schema* MemberSchema(const Schema* schema, std::string_view key) {
  if (schema != nullptr && schema->type == Type::kMap) return schema->items;
  const Field* field = FieldOf(schema, key);
  return field == nullptr ? nullptr : field->schema;
}

// What identifies an item in its list.
const Value& IdentityOf(const Value& item, std::string_view key) {
  return key.empty() ? item : item[key];
}

// Finds the items of a list by what identifies them; of several that are the same, the first.
class ItemIndex {
 public:
  explicit ItemIndex(std::string_view key) : key_(key) {}
  ItemIndex(const Array& items, std::string_view key) : key_(key) {
    positions_.reserve(items.size());
    for (const Value& item : items) Add(item);
  }

  // At the next position; false if it was there already.
  bool Add(const Value& item) {
    const size_t position = size_++;
    return positions_.try_emplace(IdentityOf(item, key_), position).second;
  }
  // The position of an item with the identity of this one.
  std::optional<size_t> Find(const Value& item) const {
    const auto found = positions_.find(IdentityOf(item, key_));
    return found == positions_.end() ? std::nullopt : std::optional<size_t>(found->second);
  }

 private:
  std::string_view key_;
  size_t size_ = 0;
  json::ValueMap<size_t> positions_;
};

// Items named in `wanted` in that order, and between them the others where the live list has them:
// each before the first later item that stands after it in `live`.
Array InOrder(const Array& merged, const Array& wanted, const Array& live, std::string_view key) {
  const ItemIndex in_merged(merged, key);
  const ItemIndex in_live(live, key);
  ItemIndex in_wanted(key);
  Array named;
  for (const Value& item : wanted) {
    const auto found = in_merged.Find(item);
    if (in_wanted.Add(item) && found) named.push_back(merged[*found]);
  }
  Array ordered;
  ordered.reserve(merged.size());
  auto next = named.begin();
  for (const Value& item : merged) {
    if (in_wanted.Find(item)) continue;
    const std::optional<size_t> place = in_live.Find(item);
    for (; next != named.end(); ++next) {
      const std::optional<size_t> other = in_live.Find(*next);
      if (place && other && *other > *place) break;
      ordered.push_back(*next);
    }
    ordered.push_back(item);
  }
  ordered.insert(ordered.end(), next, named.end());
  return ordered;
}

Status CheckItem(const Value& item, std::string_view key) {
  if (key.empty()) {
    if (item.IsObject() || item.IsArray())
      return BadPatch("this list holds scalars, and the patch has an object or a list in it");
    return Status::Ok();
  }
  if (!item.IsObject())
    return BadPatch(
        fmt::format("an item of a list that merges by \"{}\" must be an object, found {}", key,
                    json::Write(item)));
  if (item[key].IsNull() && item[kDirective].AsString() != "replace") {
    return BadPatch(
        fmt::format("map: {} does not contain declared merge key: {}", json::Write(item), key));
  }
  return Status::Ok();
}

// A list in a patch, its directives taken apart.
struct ListPatch {
  bool replaces = false;
  Array items;      // to merge or add
  Array to_delete;  // identified by their key
};

Result<ListPatch> ReadListPatch(const Value& patch, std::string_view key) {
  ListPatch read;
  for (const Value& item : patch.items()) {
    RETURN_IF_ERROR(CheckItem(item, key));
    const std::string_view directive = item[kDirective].AsString();
    if (directive == "replace") {
      read.replaces = true;
    } else if (directive == "delete") {
      read.to_delete.push_back(item);
    } else if (directive.empty() || directive == "merge") {
      read.items.push_back(item);
    } else {
      return BadPatch(fmt::format("unknown patch type \"{}\" found in a list item", directive));
    }
  }
  return read;
}

Result<Array> MergeItems(const ListRule& rule, const Array& original, const ListPatch& patch) {
  Array merged;
  ItemIndex in_merged(rule.key);
  const ItemIndex deleted(patch.to_delete, rule.key);
  for (const Value& item : original) {
    if (patch.replaces || deleted.Find(item)) continue;
    in_merged.Add(item);
    merged.push_back(item);
  }
  for (const Value& item : patch.items) {
    const std::optional<size_t> found = in_merged.Find(item);
    if (found && rule.key.empty()) continue;
    Value result = item;
    if (!rule.key.empty()) {
      ASSIGN_OR_RETURN(result, MergeMap(rule.items, found ? merged[*found] : json::Obj(), item));
    }
    if (found) {
      merged[*found] = std::move(result);
    } else {
      in_merged.Add(item);
      merged.push_back(std::move(result));
    }
  }
  return merged;
}

// The order that a patch states must be that of the items it brings.
Status CheckOrder(const Array& items, const Array& order, std::string_view key) {
  size_t at = 0;
  for (const Value& item : items) {
    while (at < order.size() && !(IdentityOf(order[at], key) == IdentityOf(item, key))) ++at;
    if (at == order.size()) {
      return BadPatch(
          fmt::format("The order in patch list:\n{}\n doesn't match setElementOrder list:\n{}\n",
                      json::Write(Value(items)), json::Write(Value(order))));
    }
  }
  return Status::Ok();
}

// `order`: the items of $setElementOrder, null if the patch has none.
Result<Value> MergeList(const ListRule& rule, const Value& original, const Value& patch,
                        const Value& order) {
  ASSIGN_OR_RETURN(const ListPatch read, ReadListPatch(patch, rule.key));
  if (order.IsArray()) RETURN_IF_ERROR(CheckOrder(read.items, order.items(), rule.key));
  ASSIGN_OR_RETURN(Array merged, MergeItems(rule, original.items(), read));
  return Value(
      InOrder(merged, order.IsArray() ? order.items() : read.items, original.items(), rule.key));
}

// A value of a patch that meets nothing of its kind in the original: itself, without directives and
// nulls.
Result<Value> Fresh(const Field* field, const Schema* schema, const Value& patch) {
  if (patch.IsObject()) return MergeMap(schema, json::Obj(), patch);
  const ListRule rule = RuleOf(field);
  if (patch.IsArray() && rule.merges) return MergeList(rule, Value(), patch, Value());
  return patch;
}

Result<Value> MergeMember(const Schema* schema, std::string_view key, const Value& original,
                          const Value& patch, const Value& order) {
  const Field* field = FieldOf(schema, key);
  const Schema* member_schema = MemberSchema(schema, key);
  const ListRule rule = RuleOf(field);
  if (original.IsObject() && patch.IsObject()) return MergeMap(member_schema, original, patch);
  if (rule.merges && patch.IsArray() && (original.IsArray() || order.IsArray()))
    return MergeList(rule, original, patch, order);
  return Fresh(field, member_schema, patch);
}

// $retainKeys: what the patch does not list goes.
Result<Value> RetainKeys(const Value& original, const Value& patch) {
  const Value* retained = patch.Find(kRetainKeys);
  if (retained == nullptr) return original;
  if (!retained->IsArray()) return BadPatch("$retainKeys must be a list of field names");
  const ItemIndex kept_keys(retained->items(), "");
  const auto keeps = [&](std::string_view key) { return kept_keys.Find(Value(key)).has_value(); };
  for (const auto& [key, value] : patch.members()) {
    if (key.starts_with('$') || value.IsNull() || keeps(key)) continue;
    return BadPatch(
        fmt::format("\"{}\" is set and must therefore be in the $retainKeys list", key));
  }
  json::Object kept;
  for (const json::Member& member : original.members()) {
    if (keeps(member.first)) kept.push_back(member);
  }
  return Value(std::move(kept));
}

// Order and removal of list items that the patch does not otherwise touch.
Status ApplyListDirectives(const Schema* schema, MemberTable<Value>& merged, const Value& original,
                           const Value& patch) {
  for (const auto& [key, value] : patch.members()) {
    const bool deletes = key.starts_with(kDeleteFromList);
    if (!deletes && !key.starts_with(kSetElementOrder)) continue;
    if (!value.IsArray()) return BadPatch(fmt::format("{} must be a list", key));
    const size_t prefix = deletes ? kDeleteFromList.size() : kSetElementOrder.size();
    const std::string_view name = std::string_view(key).substr(prefix);
    Value* list = merged.Find(name);
    if (list == nullptr || !list->IsArray()) continue;
    if (deletes) {
      const ItemIndex deleted(value.items(), "");
      Array kept;
      for (const Value& item : list->items()) {
        if (!deleted.Find(item)) kept.push_back(item);
      }
      *list = Value(std::move(kept));
      continue;
    }
    const ListRule rule = RuleOf(FieldOf(schema, name));
    if (patch.Has(name) || !rule.merges) continue;
    *list = Value(InOrder(list->items(), value.items(), original[name].items(), rule.key));
  }
  return Status::Ok();
}

Result<Value> MergeMap(const Schema* schema, const Value& original, const Value& patch) {
  if (const Value* directive = patch.Find(kDirective)) {
    const std::string_view text = directive->AsString();
    if (text == "replace") return MergeMap(schema, json::Obj(), patch.Remove(kDirective));
    if (text == "delete") return json::Obj();
    if (text != "merge")
      return BadPatch(fmt::format("unknown patch type \"{}\" found in a map", text));
  }
  ASSIGN_OR_RETURN(const Value retained, RetainKeys(original, patch));
  MemberTable<Value> merged(retained.members());
  for (const auto& [key, value] : patch.members()) {
    if (key == kDirective || key == kRetainKeys || key.starts_with(kDeleteFromList) ||
        key.starts_with(kSetElementOrder))
      continue;
    if (value.IsNull()) {
      merged.Take(key);
      continue;
    }
    const Value& order = patch[fmt::format("{}{}", kSetElementOrder, key)];
    const Value* old = merged.Find(key);
    ASSIGN_OR_RETURN(Value member,
                     MergeMember(schema, key, old == nullptr ? Value() : *old, value, order));
    merged.Put(key, std::move(member));
  }
  RETURN_IF_ERROR(ApplyListDirectives(schema, merged, original, patch));
  return json::TakeObject(merged);
}

}  // namespace

Result<Value> StrategicMerge(const Schema& schema, const Value& original, const Value& patch) {
  if (!patch.IsObject()) return BadPatch("it must be a JSON object");
  return MergeMap(&schema, original, patch);
}

}  // namespace muster::schema
