// src/schema/schema.h
//
// Schema: the structure of a JSON object, one tree for built-in kinds (made from the .proto
// descriptors) and for custom resources (made from their OpenAPI v3 schema). Defaulting, pruning,
// validation, strategic merge and OpenAPI publishing work on this tree alone and so treat both
// alike.
//
// Life cycle: built once (at start, or when a CRD changes), then immutable and shared.
// Thread:     any (immutable).

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "json/value.h"

namespace muster::schema {

enum class Type : uint8_t {
  kAny,     // anything goes (x-kubernetes-preserve-unknown-fields without a type, RawExtension)
  kObject,  // fixed `fields` (and unknown ones if preserve_unknown)
  kMap,     // string -> `items`
  kArray,   // of `items`
  kString,
  kBytes,    // base64 string
  kInteger,  // format int32 or int64
  kNumber,
  kBoolean,
  kIntOrString,
  kQuantity,  // string or number, canonical text
  kTime,      // RFC 3339, seconds
  kMicroTime,
};

enum class ListType : uint8_t { kAtomic, kSet, kMap };

struct Schema;
using SchemaPtr = std::shared_ptr<const Schema>;

struct Field {
  std::string name;  // JSON name
  // Built-in types may be recursive (JSONSchemaProps); the Registry keeps all of them alive.
  const Schema* schema = nullptr;
  std::string description;
  int number = 0;  // protobuf field number; 0 in a CRD
  bool required = false;
  bool pointer = false;  // a decoded protobuf zero is kept if set, absent otherwise (Go pointer)
  bool omit_empty = false;
  // Go embedded struct whose fields appear in the parent's JSON object. The Registry flattens
  // those: their fields stand in the parent's Schema, and only the codec needs to know the number
  // of the message that they travel in.
  bool inlined = false;
  int inlined_in = 0;  // protobuf number of the embedded message; 0: travels in the parent itself
  json::Value default_value;  // null: none
  std::vector<std::string> enum_values;
  // Strategic merge.
  std::string patch_merge_key;
  bool patch_merge = false;
  bool patch_retain_keys = false;
  // Server-side apply and validation of duplicates.
  ListType list_type = ListType::kAtomic;
  std::vector<std::string> list_map_keys;
  // What design section 1 row 3 asks for: has an effect upstream, none here yet.
  enum class Support : uint8_t { kActedOn, kNotYet, kRestrictsNotYet };
  Support support = Support::kActedOn;
  std::vector<std::string> acted_on_values;   // strings for which `support` does not hold
  std::vector<std::string> loosening_values;  // strings that restrict nothing: kNotYet at most
};

// Bounds of OpenAPI v3, for CRDs.
struct Bounds {
  std::optional<double> minimum, maximum;
  bool exclusive_minimum = false, exclusive_maximum = false;
  std::optional<int64_t> min_length, max_length, min_items, max_items, min_properties,
      max_properties;
  std::optional<double> multiple_of;
  std::string pattern;
  bool unique_items = false;
};

// How protobuf carries what is no plain value or object in JSON (kAny schemas of built-in kinds and
// lists that are messages of their own, see options.proto).
enum class WireForm : uint8_t {
  kPlain,
  kRaw,              // a message whose field 1 holds JSON bytes
  kSchemaOrArray,    // JSONSchemaPropsOrArray
  kSchemaOrBool,     // JSONSchemaPropsOrBool
  kSchemaOrStrings,  // JSONSchemaPropsOrStringArray
  kStrings,          // a message whose field 1 holds the strings of a list
};

// Lets field names be looked up by a view, without making a string.
struct NameHash {
  using is_transparent = void;
  size_t operator()(std::string_view name) const { return std::hash<std::string_view>{}(name); }
};
using FieldIndex = std::unordered_map<std::string, size_t, NameHash, std::equal_to<>>;

struct Schema {
  Type type = Type::kAny;
  WireForm wire_form = WireForm::kPlain;
  std::string name;    // "io.k8s.api.core.v1.PodSpec"; "" for an inline CRD schema
  std::string format;  // "int32", "int64", "double", ... as OpenAPI publishes it
  std::string description;
  std::vector<Field> fields;      // kObject
  FieldIndex index;               // field name -> position in `fields`
  const Schema* items = nullptr;  // kArray, kMap
  bool nullable = false;
  bool preserve_unknown = false;
  bool embedded_resource = false;
  std::vector<json::Value> enum_values;
  Bounds bounds;
  // A CRD's schema as its author wrote it, for publishing; null for built-in types.
  json::Value source;
  std::vector<SchemaPtr> owned;  // children kept alive by this node (CRDs)

  const Field* Find(std::string_view field) const {
    const auto found = index.find(field);
    return found == index.end() ? nullptr : &fields[found->second];
  }
};

}  // namespace muster::schema
