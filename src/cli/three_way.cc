#include "cli/three_way.h"

#include <algorithm>
#include <vector>

#include "json/parse.h"
#include "json/write.h"

namespace muster::cli {
namespace {

using json::Value;

const schema::Field* FieldOf(const schema::Schema* schema, const std::string& name) {
  return schema == nullptr ? nullptr : schema->Find(name);
}

const Value* FindByKey(const Value& list, const std::string& key, const Value& id) {
  for (const Value& item : list.items()) {
    if (item[key] == id) return &item;
  }
  return nullptr;
}

bool Contains(const Value& list, const Value& item) {
  return std::find(list.items().begin(), list.items().end(), item) != list.items().end();
}

Value Merge(const Value& last, const Value& wanted, const Value& current,
            const schema::Schema* schema, const schema::Field* field);

// The order of `ids` among the items of `list` that have one of them.
std::vector<Value> OrderOf(const Value& list, const std::string& key, const Value& among) {
  std::vector<Value> ids;
  for (const Value& item : list.items()) {
    if (FindByKey(among, key, item[key]) != nullptr) ids.push_back(item[key]);
  }
  return ids;
}

Value MergeKeyedList(const Value& last, const Value& wanted, const Value& current,
                     const schema::Schema* item_schema, const std::string& key) {
  json::Array kept;  // in the server's order
  for (const Value& item : current.items()) {
    if (const Value* next = FindByKey(wanted, key, item[key])) {
      const Value* before = FindByKey(last, key, item[key]);
      kept.push_back(
          Merge(before == nullptr ? Value() : *before, *next, item, item_schema, nullptr));
    } else if (FindByKey(last, key, item[key]) == nullptr) {
      kept.push_back(item);  // someone else's
    }
  }
  for (const Value& item : wanted.items()) {
    if (FindByKey(current, key, item[key]) == nullptr) kept.push_back(item);
  }
  Value merged(std::move(kept));
  if (OrderOf(merged, key, wanted) == OrderOf(wanted, key, wanted)) return merged;
  // The user's order counts where it matters (init containers); what others added follows.
  json::Array ordered;
  for (const Value& item : wanted.items()) ordered.push_back(*FindByKey(merged, key, item[key]));
  for (const Value& item : merged.items()) {
    if (FindByKey(wanted, key, item[key]) == nullptr) ordered.push_back(item);
  }
  return Value(std::move(ordered));
}

Value MergeSet(const Value& last, const Value& wanted, const Value& current) {
  json::Array out;
  for (const Value& item : current.items()) {
    if (Contains(wanted, item) || !Contains(last, item)) out.push_back(item);
  }
  for (const Value& item : wanted.items()) {
    if (!Contains(current, item)) out.push_back(item);
  }
  return Value(std::move(out));
}

Value MergeObject(const Value& last, const Value& wanted, const Value& current,
                  const schema::Schema* schema) {
  Value out = current;
  for (const auto& [key, value] : wanted.members()) {
    if (value.IsNull()) {
      out = out.Remove(key);
      continue;
    }
    const schema::Field* field = FieldOf(schema, key);
    const schema::Schema* child = field != nullptr    ? field->schema
                                  : schema != nullptr ? schema->items
                                                      : nullptr;
    out = out.Set(key, Merge(last[key], value, current[key], child, field));
  }
  for (const auto& [key, value] : last.members()) {
    if (!wanted.Has(key)) out = out.Remove(key);
  }
  return out;
}

Value Merge(const Value& last, const Value& wanted, const Value& current,
            const schema::Schema* schema, const schema::Field* field) {
  if (wanted.IsObject() && current.IsObject()) return MergeObject(last, wanted, current, schema);
  const bool lists = wanted.IsArray() && current.IsArray();
  if (!lists || field == nullptr || !field->patch_merge) return wanted;
  if (field->patch_merge_key.empty()) return MergeSet(last, wanted, current);
  const schema::Schema* items = schema == nullptr ? nullptr : schema->items;
  return MergeKeyedList(last, wanted, current, items, field->patch_merge_key);
}

Value Sorted(const Value& value) {
  if (value.IsArray()) {
    json::Array items;
    for (const Value& item : value.items()) items.push_back(Sorted(item));
    return Value(std::move(items));
  }
  if (!value.IsObject()) return value;
  json::Object members;
  for (const auto& [key, member] : value.members()) members.emplace_back(key, Sorted(member));
  std::sort(members.begin(), members.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  return Value(std::move(members));
}

}  // namespace

Value ThreeWayMerge(const Value& last, const Value& wanted, const Value& current,
                    const schema::Schema* schema) {
  return Merge(last, wanted, current, schema, nullptr);
}

Value WithLastApplied(const Value& manifest) {
  Value record = manifest;
  if (!record["metadata"]["annotations"].IsObject())
    record = record.SetPath({"metadata", "annotations"}, json::Obj());
  record = record.RemovePath({"metadata", "annotations", kLastApplied});
  return manifest.SetPath({"metadata", "annotations", kLastApplied},
                          json::Write(Sorted(record)) + "\n");
}

Value LastAppliedOf(const Value& current) {
  const std::string_view text = current["metadata"]["annotations"][kLastApplied].AsString();
  return text.empty() ? Value() : json::Parse(text).value_or(Value());
}

}  // namespace muster::cli
