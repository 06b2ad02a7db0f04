// Schemas inside CustomResourceDefinitions: the rules of structural schemas and what OpenAPI v3
// schemas may hold (k8s.io/apiextensions-apiserver pkg/apis/apiextensions/validation and
// pkg/apiserver/schema).

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <set>

#include "json/value_hash.h"
#include "schema/crd.h"
#include "schema/validation.h"
#include "schema/validation/kind_validation.h"

namespace muster::schema {
namespace {

using json::Value;

enum class Level { kRoot, kField, kItem };

constexpr std::string_view kMissingType[] = {"must not be empty at the root",
                                             "must not be empty for specified object fields",
                                             "must not be empty for specified array items"};

void ValidateType(const Value& schema, const Path& path, Level level, FieldErrors& errors) {
  const Value& type = schema["type"];
  const Path place = path.Child("type");
  const bool open = schema["x-kubernetes-preserve-unknown-fields"].AsBool() ||
                    schema["x-kubernetes-int-or-string"].AsBool();
  if (type.AsString().empty()) {
    if (!open) errors.Required(place, kMissingType[static_cast<int>(level)]);
  } else if (errors.OneOf(place, type,
                          {"array", "boolean", "integer", "number", "object", "string"}) &&
             level == Level::kRoot && type.AsString() != "object") {
    errors.Invalid(place, type, "must be object at the root");
  }
  if (type.AsString() == "array" && schema["items"].IsNull())
    errors.Required(path.Child("items"), "must be specified");
}

// Words of JSON Schema that the API server does not take.
void ValidatePattern(const Value& pattern, const Path& path, size_t& pattern_size,
                     FieldErrors& errors) {
  if (pattern.AsString().empty() || pattern_size > kMaxPatternInstructions) return;
  const RE2 compiled(pattern.Str(), RE2::Quiet);
  if (!compiled.ok()) {
    return errors.Invalid(
        path, pattern,
        fmt::format("must be a valid regular expression, but isn't: {}", compiled.error()));
  }
  pattern_size += static_cast<size_t>(compiled.ProgramSize());
  if (pattern_size <= kMaxPatternInstructions) return;
  errors.Forbidden(path, fmt::format("the patterns of one definition may compile to {} "
                                     "instructions together: use simpler or fewer ones",
                                     kMaxPatternInstructions));
}

void ValidateWords(const Value& schema, const Path& path, FieldErrors& errors) {
  for (const char* word :
       {"id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"}) {
    if (!schema[word].IsNull())
      errors.Forbidden(path.Child(word), fmt::format("{} is not supported", word));
  }
  if (schema["uniqueItems"].AsBool()) {
    errors.Forbidden(
        path.Child("uniqueItems"),
        "uniqueItems cannot be set to true since the runtime complexity becomes quadratic");
  }
  const Value& open = schema["x-kubernetes-preserve-unknown-fields"];
  if (open.IsBool() && !open.AsBool()) {
    errors.Invalid(path.Child("x-kubernetes-preserve-unknown-fields"), open,
                   "must be true or undefined");
  }
}

void ValidateMapKeys(const Value& schema, const Path& path, FieldErrors& errors) {
  const Value& keys = schema["x-kubernetes-list-map-keys"];
  const Value& item = schema["items"];
  const Path items = path.Child("items");
  const Path keys_path = path.Child("x-kubernetes-list-map-keys");
  if (keys.empty())
    errors.Required(keys_path, "must not be empty if x-kubernetes-list-type is map");
  if (item.IsNull()) return;  // ValidateType has said so
  if (item["type"].AsString() != "object") {
    return errors.Invalid(items.Child("type"), item["type"],
                          "must be object if parent array's x-kubernetes-list-type is map");
  }
  const Path properties = items.Child("properties");
  std::set<std::string> seen;
  const json::Array& required_names = item["required"].items();
  const json::ValueSet required(required_names.begin(), required_names.end());
  for (const Value& key : keys.items()) {
    const std::string name = key.Str();
    const Value& property = item["properties"][name];
    const Path place = properties.Key(name);
    if (!seen.insert(name).second)
      errors.Invalid(keys_path, keys, "must not contain duplicate entries");
    if (property.IsNull()) {
      errors.Invalid(keys_path, keys, "entries must all be names of item properties");
      continue;
    }
    const std::string_view type = property["type"].AsString();
    if (type == "array" || type == "object") {
      errors.Invalid(place.Child("type"), type,
                     "must be a scalar type if parent array's x-kubernetes-list-type is map");
    }
    if (!required.contains(key) && property["default"].IsNull()) {
      errors.Required(place.Child("default"),
                      "this property is in x-kubernetes-list-map-keys, so it must have a default "
                      "or be a required property");
    }
  }
}

// How lists and maps merge.
void ValidateMerging(const Value& schema, const Path& path, FieldErrors& errors) {
  const Value& map_type = schema["x-kubernetes-map-type"];
  const Value& list_type = schema["x-kubernetes-list-type"];
  const Value& type = schema["type"];
  const Path type_path = path.Child("type");
  if (!map_type.IsNull() && type.AsString() != "object")
    errors.Invalid(type_path, type, "must be object if x-kubernetes-map-type is specified");
  if (!map_type.IsNull())
    errors.OneOf(path.Child("x-kubernetes-map-type"), map_type, {"atomic", "granular"});
  const Path list_path = path.Child("x-kubernetes-list-type");
  if (!list_type.IsNull() && type.AsString() != "array")
    errors.Invalid(type_path, type, "must be array if x-kubernetes-list-type is specified");
  if (!list_type.IsNull()) errors.OneOf(list_path, list_type, {"atomic", "set", "map"});
  constexpr std::string_view kMustBeMap = "must be map if x-kubernetes-list-map-keys is non-empty";
  const bool map = list_type.AsString() == "map";
  if (!schema["x-kubernetes-list-map-keys"].empty() && !map) {
    if (list_type.IsNull()) errors.Required(list_path, kMustBeMap);
    if (!list_type.IsNull()) errors.Invalid(list_path, list_type, kMustBeMap);
  }
  if (map) ValidateMapKeys(schema, path, errors);
}

void ValidateNode(const Value& schema, const Path& path, Level level, int depth,
                  size_t& pattern_size, FieldErrors& errors);

void ValidateChildren(const Value& schema, const Path& path, Level level, int depth,
                      size_t& pattern_size, FieldErrors& errors) {
  const Value& more = schema["additionalProperties"];
  const Path more_path = path.Child("additionalProperties");
  if (!more.IsNull() && level == Level::kRoot)
    errors.Forbidden(more_path, "must not be used at the root");
  if (!schema["properties"].empty() && (more.IsObject() || (more.IsBool() && !more.AsBool())))
    errors.Forbidden(more_path, "additionalProperties and properties are mutual exclusive");
  if (more.IsObject())
    ValidateNode(more, more_path, Level::kField, depth + 1, pattern_size, errors);
  if (!schema["items"].IsNull())
    ValidateNode(schema["items"], path.Child("items"), Level::kItem, depth + 1, pattern_size,
                 errors);
  const Path properties = path.Child("properties");
  for (const auto& [name, property] : schema["properties"].members()) {
    const Path place = properties.Key(name);
    // The API's own types: they may be named and not changed.
    const bool type_name = name == "apiVersion" || name == "kind";
    if (level == Level::kRoot && (type_name || name == "metadata")) {
      const std::string_view right = type_name ? "string" : "object";
      if (property["type"].AsString() != right) {
        errors.Invalid(place.Child("type"), property["type"].AsString(),
                       fmt::format("must be {}", right));
      }
      continue;
    }
    ValidateNode(property, place, Level::kField, depth + 1, pattern_size, errors);
  }
}

void ValidateNode(const Value& schema, const Path& path, Level level, int depth,
                  size_t& pattern_size, FieldErrors& errors) {
  if (depth > kMaxSchemaDepth) {
    return errors.Forbidden(path,
                            fmt::format("schemas may be at most {} levels deep", kMaxSchemaDepth));
  }
  ValidateType(schema, path, level, errors);
  ValidateWords(schema, path, errors);
  ValidatePattern(schema["pattern"], path.Child("pattern"), pattern_size, errors);
  ValidateMerging(schema, path, errors);
  ValidateChildren(schema, path, level, depth, pattern_size, errors);
}

// A default must fit the schema that it stands in. `built`: what `schema` says.
void ValidateDefaults(const Value& schema, const Schema& built, const Path& path,
                      FieldErrors& errors) {
  if (!schema["default"].IsNull()) {
    const Path place = path.Child("default");
    errors.Append(ValidateStructural(built, schema["default"], place.ToString()));
  }
  for (const char* key : {"additionalProperties", "items"}) {
    if (schema[key].IsObject() && built.items != nullptr)
      ValidateDefaults(schema[key], *built.items, path.Child(key), errors);
  }
  const Path properties = path.Child("properties");
  for (const auto& [name, property] : schema["properties"].members()) {
    if (const Field* field = built.Find(name))
      ValidateDefaults(property, *field->schema, properties.Key(name), errors);
  }
}

}  // namespace

void ValidateRootSchema(const Value& schema, const Path& path, size_t& pattern_size,
                        FieldErrors& errors) {
  if (schema["nullable"].AsBool())
    errors.Forbidden(path.Child("nullable"), "nullable cannot be true at the root");
  const size_t faults = errors.size();
  ValidateNode(schema, path, Level::kRoot, 0, pattern_size, errors);
  if (errors.size() != faults) return;
  // Built once: with a default at each level the innermost parts would be built for each of them.
  if (const Result<SchemaPtr> built = SchemaFromJson(schema))
    ValidateDefaults(schema, **built, path, errors);
}

}  // namespace muster::schema
