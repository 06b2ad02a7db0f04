#include "schema/openapi_schemas.h"

#include <algorithm>

#include "base/strings.h"
#include "schema/openapi_v3.h"
#include "schema/registry.h"
#include "schema/type_names.h"

namespace muster::schema {
namespace {

constexpr std::string_view kObjectMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
constexpr std::string_view kListMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
constexpr std::string_view kGvkExtension = "x-kubernetes-group-version-kind";

void Put(json::Object& object, std::string_view key, json::Value value) {
  object.emplace_back(std::string(key), std::move(value));
}

json::Value TypeOnly(std::string_view type) { return json::Obj({{"type", type}}); }

// What a type looks like where it has no name: scalars, lists, maps.
json::Value Inline(const Schema& schema, const std::vector<std::string>& enum_values);

// A reference or the inline form.
json::Value Use(const Schema& schema, const std::vector<std::string>& enum_values) {
  const bool inline_list = schema.wire_form == WireForm::kStrings;
  return schema.name.empty() || inline_list ? Inline(schema, enum_values)
                                            : ComponentRef(schema.name);
}

json::Value Inline(const Schema& schema, const std::vector<std::string>& enum_values) {
  json::Object out;
  Put(out, "type", OpenApiTypeName(schema.type));
  if (schema.type == Type::kArray || schema.type == Type::kMap) {
    const bool is_list = schema.type == Type::kArray;
    Put(out, is_list ? "items" : "additionalProperties", Use(*schema.items, enum_values));
    return out;
  }
  if (!schema.format.empty()) Put(out, "format", schema.format);
  if (!enum_values.empty()) Put(out, "enum", json::Strings(enum_values));
  return out;
}

void PutMergeRules(const Field& field, json::Object& out) {
  if (field.schema->type == Type::kArray) {
    if (field.list_type == ListType::kMap) {
      Put(out, "x-kubernetes-list-map-keys", json::Strings(field.list_map_keys));
      Put(out, "x-kubernetes-list-type", "map");
    } else {
      Put(out, "x-kubernetes-list-type", field.list_type == ListType::kSet ? "set" : "atomic");
    }
  }
  if (!field.patch_merge_key.empty())
    Put(out, "x-kubernetes-patch-merge-key", field.patch_merge_key);
  if (field.patch_merge || field.patch_retain_keys) {
    const std::string_view strategy = !field.patch_merge        ? "retainKeys"
                                      : field.patch_retain_keys ? "merge,retainKeys"
                                                                : "merge";
    Put(out, "x-kubernetes-patch-strategy", strategy);
  }
}

json::Value Property(const Field& field) {
  json::Object out;
  if (!field.description.empty()) Put(out, "description", field.description);
  if (!field.default_value.IsNull()) Put(out, "default", field.default_value);
  if (field.schema->name.empty()) {
    const json::Value inlined = Inline(*field.schema, field.enum_values);
    out.insert(out.end(), inlined.members().begin(), inlined.members().end());
  } else if (out.empty()) {
    return ComponentRef(field.schema->name);
  } else {
    Put(out, "allOf", json::List({ComponentRef(field.schema->name)}));
  }
  PutMergeRules(field, out);
  return out;
}

json::Value ObjectSchema(const Schema& schema, json::Object out) {
  Put(out, "type", "object");
  json::Object properties;
  std::vector<std::string> required;
  for (const Field& field : schema.fields) {
    properties.emplace_back(field.name, Property(field));
    if (field.required) required.push_back(field.name);
  }
  if (!properties.empty()) Put(out, "properties", std::move(properties));
  if (!required.empty()) Put(out, "required", json::Strings(required));
  return out;
}

json::Value TypeMetaProperties(const json::Value& properties) {
  json::Object out;
  const Schema& pod = *Registry::BuiltIn().FindMessage("v1", "Pod");
  for (const std::string_view name : {"apiVersion", "kind"})
    out.emplace_back(name, Property(*pod.Find(name)));
  out.emplace_back("metadata", json::Obj({{"description", "Name, labels and other metadata."},
                                          {"allOf", json::List({ComponentRef(kObjectMeta)})}}));
  for (const json::Member& member : properties.members())
    if (member.first != "apiVersion" && member.first != "kind" && member.first != "metadata")
      out.push_back(member);
  return out;
}

}  // namespace

json::Value ComponentRef(std::string_view name) {
  return json::Obj({{"$ref", "#/components/schemas/" + std::string(name)}});
}

json::Value GroupVersionKind(std::string_view group, std::string_view version,
                             std::string_view kind) {
  return json::Obj({{"group", group}, {"kind", kind}, {"version", version}});
}

std::string ComponentName(const Kind& kind) {
  if (kind.schema != nullptr && !kind.schema->name.empty() && !kind.custom)
    return kind.schema->name;
  std::string name;
  std::vector<std::string_view> parts = Split(kind.group, '.');
  std::reverse(parts.begin(), parts.end());
  for (const std::string_view part : parts) name += std::string(part) + ".";
  return name + kind.version + "." + kind.kind;
}

json::Value ComponentSchema(const Schema& schema) {
  json::Object out;
  if (!schema.description.empty()) Put(out, "description", schema.description);
  switch (schema.type) {
    case Type::kObject:
      return ObjectSchema(schema, std::move(out));
    case Type::kIntOrString:
      Put(out, "format", "int-or-string");
      Put(out, "oneOf", json::List({TypeOnly("integer"), TypeOnly("string")}));
      break;
    case Type::kQuantity:
      Put(out, "oneOf", json::List({TypeOnly("string"), TypeOnly("number")}));
      break;
    case Type::kTime:
    case Type::kMicroTime:
      Put(out, "type", "string");
      Put(out, "format", "date-time");
      break;
    case Type::kAny:
      // RawExtension and FieldsV1 are objects; JSON and JSONSchemaPropsOrBool are anything.
      if (schema.name.starts_with("io.k8s.apimachinery.")) {
        Put(out, "type", "object");
      } else {
        Put(out, "x-kubernetes-preserve-unknown-fields", true);
      }
      break;
    default:
      return Inline(schema, {});
  }
  return out;
}

void OpenApiSchemas::AddSchema(const Schema& schema, json::Value extra_gvk) {
  if (schemas_.contains(schema.name)) return;
  json::Value component = ComponentSchema(schema);
  if (!extra_gvk.IsNull())
    component = component.Set(kGvkExtension, json::List({std::move(extra_gvk)}));
  schemas_.emplace(schema.name, std::move(component));
  AddReferences(schema);
}

void OpenApiSchemas::AddReferences(const Schema& schema) {
  for (const Field& field : schema.fields) {
    const Schema* target = field.schema;
    while (target->name.empty() && target->items != nullptr) target = target->items;
    if (!target->name.empty()) AddSchema(*target, nullptr);
  }
}

void OpenApiSchemas::AddNamed(std::string_view name) {
  const Schema* schema = Registry::BuiltIn().FindSchema(name);
  if (schema != nullptr) AddSchema(*schema, nullptr);
}

void OpenApiSchemas::AddKind(const Kind& kind) {
  if (kind.custom || kind.schema == nullptr) {
    AddCustomKind(kind);
  } else {
    AddSchema(*kind.schema, GroupVersionKind(kind.group, kind.version, kind.kind));
    const Schema* list = Registry::BuiltIn().FindSchema(kind.schema->name + "List");
    if (list != nullptr)
      AddSchema(*list, GroupVersionKind(kind.group, kind.version, kind.list_kind));
  }
}

void OpenApiSchemas::AddCustomKind(const Kind& kind) {
  json::Value source = kind.schema == nullptr ? json::Value() : kind.schema->source;
  if (!source.IsObject())
    source = json::Obj({{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}});
  const json::Value component =
      source.Set("properties", TypeMetaProperties(source["properties"]))
          .Set(kGvkExtension, json::List({GroupVersionKind(kind.group, kind.version, kind.kind)}));
  schemas_.insert_or_assign(ComponentName(kind), component);
  AddNamed(kObjectMeta);
  AddListOf(kind);
}

void OpenApiSchemas::AddListOf(const Kind& kind) {
  const Schema& pods = *Registry::BuiltIn().FindMessage("v1", "PodList");
  json::Object properties;
  for (const std::string_view name : {"apiVersion", "kind"})
    properties.emplace_back(name, Property(*pods.Find(name)));
  properties.emplace_back("items", json::Obj({{"description", "The objects of the list."},
                                              {"type", "array"},
                                              {"items", ComponentRef(ComponentName(kind))}}));
  properties.emplace_back("metadata",
                          json::Obj({{"description", "Revision and paging of the list."},
                                     {"allOf", json::List({ComponentRef(kListMeta)})}}));
  const json::Value list =
      json::Obj({{"description", "A list of " + kind.kind + " objects."},
                 {"type", "object"},
                 {"required", json::Strings({"items"})},
                 {"properties", std::move(properties)},
                 {std::string(kGvkExtension),
                  json::List({GroupVersionKind(kind.group, kind.version, kind.list_kind)})}});
  schemas_.insert_or_assign(ComponentName(kind) + "List", list);
  AddNamed(kListMeta);
}

json::Value OpenApiSchemas::Take() {
  json::Object out;
  out.reserve(schemas_.size());
  for (auto& [name, schema] : schemas_) out.emplace_back(name, std::move(schema));
  schemas_.clear();
  return out;
}

}  // namespace muster::schema
