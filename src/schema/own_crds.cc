#include "schema/own_crds.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "schema/registry.h"
#include "schema/type_names.h"

namespace muster::schema {
namespace {

// What upstream's CRDs accept as a quantity (k8s.io/apimachinery/pkg/api/resource).
constexpr std::string_view kQuantityPattern =
    R"(^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+)))"
    R"((([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$)";

void Put(json::Object& object, std::string_view key, json::Value value) {
  object.emplace_back(std::string(key), std::move(value));
}

json::Value IntegerOrString() {
  return json::List({json::Obj({{"type", "integer"}}), json::Obj({{"type", "string"}})});
}

// Structural schemas with nothing left to refer to. The same types stand in many definitions, a
// pod's template above all: each is written once, and all definitions share it, in memory too
// (crd.cc makes one Schema of what is shared).
class Writer {
 public:
  json::Value Root(const Kind& kind) {
    const json::Value whole = Structural(*kind.schema, {});
    // The API server knows apiVersion, kind and metadata of every object by itself.
    return whole.SetPath({"properties", "metadata"}, json::Obj({{"type", "object"}}));
  }

 private:
  // `list_map_keys`: the properties that tell the items of the list around it apart.
  const json::Value& Structural(const Schema& schema,
                                const std::vector<std::string>& list_map_keys) {
    const std::pair key(&schema, list_map_keys);
    if (const auto found = made_.find(key); found != made_.end()) return found->second;
    json::Value made = Make(schema, list_map_keys);
    return made_.emplace(key, std::move(made)).first->second;
  }

  json::Value Make(const Schema& schema, const std::vector<std::string>& list_map_keys) {
    json::Object out;
    if (!schema.description.empty()) Put(out, "description", schema.description);
    switch (schema.type) {
      case Type::kObject:
        return ObjectSchema(schema, std::move(out), list_map_keys);
      case Type::kMap:
        Put(out, "type", "object");
        Put(out, "additionalProperties", Structural(*schema.items, {}));
        return out;
      case Type::kArray:
        Put(out, "type", "array");
        Put(out, "items", Structural(*schema.items, list_map_keys));
        return out;
      case Type::kAny:
        Put(out, "type", "object");
        Put(out, "x-kubernetes-preserve-unknown-fields", true);
        return out;
      case Type::kIntOrString:
        Put(out, "anyOf", IntegerOrString());
        Put(out, "x-kubernetes-int-or-string", true);
        return out;
      case Type::kQuantity:
        Put(out, "anyOf", IntegerOrString());
        Put(out, "pattern", kQuantityPattern);
        Put(out, "x-kubernetes-int-or-string", true);
        return out;
      default:
        Put(out, "type", OpenApiTypeName(schema.type));
        if (!schema.format.empty()) Put(out, "format", schema.format);
        return out;
    }
  }

  json::Value ObjectSchema(const Schema& schema, json::Object out,
                           const std::vector<std::string>& list_map_keys) {
    json::Object properties;
    std::vector<std::string> required;
    for (const Field& field : schema.fields) {
      const bool is_key =
          std::find(list_map_keys.begin(), list_map_keys.end(), field.name) != list_map_keys.end();
      properties.emplace_back(field.name, Property(schema, field, is_key));
      if (field.required) required.push_back(field.name);
    }
    Put(out, "type", "object");
    Put(out, "properties", std::move(properties));
    if (!required.empty()) Put(out, "required", json::Strings(required));
    return out;
  }

  // Words, allowed values and merge rules of a field around the schema of its value.
  json::Value Property(const Schema& parent, const Field& field, bool is_map_key) {
    json::Object out;
    if (!field.description.empty()) Put(out, "description", field.description);
    // The defaults of a pod belong to pods: a job keeps its template as the user wrote it. Keys of
    // lists need one.
    const bool ours = !parent.name.starts_with("io.k8s.");
    if (!field.default_value.IsNull() && (ours || is_map_key)) {
      Put(out, "default", field.default_value);
    } else if (is_map_key && !field.required) {
      Put(out, "default", "");
    }
    const bool keyed = field.list_type == ListType::kMap;
    const json::Value inner =
        Structural(*field.schema, keyed ? field.list_map_keys : std::vector<std::string>());
    for (const json::Member& member : inner.members())
      if (member.first != "description" || field.description.empty()) out.push_back(member);
    if (!field.enum_values.empty() && field.schema->type == Type::kString)
      Put(out, "enum", json::Strings(field.enum_values));
    if (field.schema->type == Type::kArray && field.list_type != ListType::kAtomic) {
      if (keyed) Put(out, "x-kubernetes-list-map-keys", json::Strings(field.list_map_keys));
      Put(out, "x-kubernetes-list-type", keyed ? "map" : "set");
    }
    return out;
  }

  std::map<std::pair<const Schema*, std::vector<std::string>>, json::Value> made_;
};

json::Value Subresources(const Kind& kind) {
  json::Object out;
  if (kind.status_subresource) Put(out, "status", json::Obj());
  if (kind.scale != nullptr) {
    Put(out, "scale",
        json::Obj({{"specReplicasPath", kind.scale->spec_replicas_path},
                   {"statusReplicasPath", kind.scale->status_replicas_path},
                   {"labelSelectorPath", kind.scale->label_selector_path}}));
  }
  return out;
}

json::Value Columns(const Kind& kind) {
  json::Array out;
  for (const PrinterColumn& column : kind.columns) {
    json::Object made;
    Put(made, "name", column.name);
    Put(made, "type", column.type);
    Put(made, "jsonPath", column.json_path);
    if (!column.format.empty()) Put(made, "format", column.format);
    if (!column.description.empty()) Put(made, "description", column.description);
    if (column.priority != 0) Put(made, "priority", column.priority);
    out.push_back(std::move(made));
  }
  return out;
}

json::Value Selectable(const Kind& kind) {
  json::Array out;
  for (const std::string& field : kind.selectable_fields)
    out.push_back(json::Obj({{"jsonPath", "." + field}}));
  return json::Value(std::move(out));
}

json::Value Names(const Kind& kind) {
  json::Object out;
  Put(out, "plural", kind.plural);
  Put(out, "singular", kind.singular);
  if (!kind.short_names.empty()) Put(out, "shortNames", json::Strings(kind.short_names));
  Put(out, "kind", kind.kind);
  Put(out, "listKind", kind.list_kind);
  if (!kind.categories.empty()) Put(out, "categories", json::Strings(kind.categories));
  return out;
}

json::Value Version(const Kind& kind, bool storage, Writer& writer) {
  json::Object version;
  Put(version, "name", kind.version);
  Put(version, "served", true);
  Put(version, "storage", storage);
  Put(version, "schema", json::Obj({{"openAPIV3Schema", writer.Root(kind)}}));
  Put(version, "subresources", Subresources(kind));
  Put(version, "additionalPrinterColumns", Columns(kind));
  if (!kind.selectable_fields.empty()) Put(version, "selectableFields", Selectable(kind));
  return json::Value(std::move(version));
}

json::Value MakeCrd(const Kind& kind, Writer& writer) {
  json::Array versions;
  for (const KindPtr& each : Registry::BuiltIn().own_custom_kinds()) {
    if (each->QualifiedResource() == kind.QualifiedResource())
      versions.push_back(Version(*each, versions.empty(), writer));
  }
  return json::Obj({{"apiVersion", "apiextensions.k8s.io/v1"},
                    {"kind", "CustomResourceDefinition"},
                    {"metadata", json::Obj({{"name", kind.QualifiedResource()}})},
                    {"spec", json::Obj({{"group", kind.group},
                                        {"names", Names(kind)},
                                        {"scope", kind.namespaced ? "Namespaced" : "Cluster"},
                                        {"versions", json::Value(std::move(versions))},
                                        {"conversion", json::Obj({{"strategy", "None"}})}})}});
}

std::vector<json::Value> MakeAll() {
  Writer writer;
  std::vector<json::Value> out;
  std::set<std::string> names;
  for (const KindPtr& kind : Registry::BuiltIn().own_custom_kinds()) {
    if (names.insert(kind->QualifiedResource()).second) out.push_back(MakeCrd(*kind, writer));
  }
  return out;
}

}  // namespace

json::Value CrdOf(const Kind& kind) {
  for (const json::Value& crd : OwnCrds())
    if (crd["metadata"]["name"].AsString() == kind.QualifiedResource()) return crd;
  return nullptr;
}

const std::vector<json::Value>& OwnCrds() {
  static const std::vector<json::Value> crds = MakeAll();
  return crds;
}

}  // namespace muster::schema
