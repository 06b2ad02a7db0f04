#include "schema/crd.h"

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "schema/own_crds.h"
#include "schema/registry.h"

namespace muster::schema {
namespace {

using json::Value;

constexpr std::string_view kObjectMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

// The types that every object shares; they live as long as the program.
const Schema& StringSchema() {
  static const Schema schema = [] {
    Schema made;
    made.type = Type::kString;
    return made;
  }();
  return schema;
}

const Schema& AnySchema() {
  static const Schema schema = [] {
    Schema made;
    made.preserve_unknown = true;
    return made;
  }();
  return schema;
}

void AddField(Schema& schema, Field field) {
  const auto found = schema.index.find(field.name);
  if (found != schema.index.end()) {
    schema.fields[found->second] = std::move(field);
    return;
  }
  schema.index.emplace(field.name, schema.fields.size());
  schema.fields.push_back(std::move(field));
}

// apiVersion, kind and metadata of a whole object, whatever its author wrote about them.
void AddTypeAndMetadata(Schema& schema, bool required) {
  for (const char* name : {"apiVersion", "kind"}) {
    Field field;
    field.name = name;
    field.schema = &StringSchema();
    field.required = required;
    AddField(schema, std::move(field));
  }
  Field metadata;
  metadata.name = "metadata";
  metadata.schema = Registry::BuiltIn().FindSchema(kObjectMeta);
  if (metadata.schema == nullptr) metadata.schema = &AnySchema();
  AddField(schema, std::move(metadata));
}

std::optional<double> Number(const Value& value) {
  if (!value.IsNumber()) return std::nullopt;
  return value.AsDouble();
}

Bounds ReadBounds(const Value& json) {
  Bounds bounds;
  bounds.minimum = Number(json["minimum"]);
  bounds.maximum = Number(json["maximum"]);
  bounds.exclusive_minimum = json["exclusiveMinimum"].AsBool();
  bounds.exclusive_maximum = json["exclusiveMaximum"].AsBool();
  bounds.min_length = json["minLength"].Int();
  bounds.max_length = json["maxLength"].Int();
  bounds.min_items = json["minItems"].Int();
  bounds.max_items = json["maxItems"].Int();
  bounds.min_properties = json["minProperties"].Int();
  bounds.max_properties = json["maxProperties"].Int();
  bounds.multiple_of = Number(json["multipleOf"]);
  bounds.pattern = json["pattern"].Str();
  bounds.unique_items = json["uniqueItems"].AsBool();
  return bounds;
}

// Schemas of parts that several definitions share (own_crds.h), by where the part lies in memory
// and what is described there. The texts are kept, so that no other one ever lies there.
using SharedSchemas = std::map<std::pair<const void*, const Schema*>, std::shared_ptr<Schema>>;

// `described`: what we know of the same place from our own .proto files, for Field::support; may be
// null. `shared`: null where nothing is shared.
class SchemaBuilder {
 public:
  explicit SchemaBuilder(const Schema* described, SharedSchemas* shared = nullptr)
      : described_(described), shared_(shared) {}

  Result<std::shared_ptr<Schema>> Node(const Value& json, int depth) {
    if (shared_ == nullptr || json.empty()) return Make(json, depth);
    const std::pair key(static_cast<const void*>(&json.members()), described_);
    if (const auto found = shared_->find(key); found != shared_->end()) return found->second;
    ASSIGN_OR_RETURN(std::shared_ptr<Schema> schema, Make(json, depth));
    return shared_->emplace(key, std::move(schema)).first->second;
  }

  // The same, which nobody else has.
  Result<std::shared_ptr<Schema>> Make(const Value& json, int depth) {
    if (depth > kMaxSchemaDepth)
      return Error(Reason::kInvalid, "a schema may be at most {} levels deep", kMaxSchemaDepth);
    auto schema = std::make_shared<Schema>();
    schema->source = json;
    schema->description = json["description"].Str();
    schema->format = json["format"].Str();
    schema->nullable = json["nullable"].AsBool();
    schema->preserve_unknown = json["x-kubernetes-preserve-unknown-fields"].AsBool();
    schema->embedded_resource = json["x-kubernetes-embedded-resource"].AsBool();
    schema->enum_values = json["enum"].items();
    schema->bounds = ReadBounds(json);
    RETURN_IF_ERROR(FillType(json, depth, *schema));
    return schema;
  }

 private:
  Status FillType(const Value& json, int depth, Schema& schema) {
    const std::string_view type = json["type"].AsString();
    if (json["x-kubernetes-int-or-string"].AsBool()) {
      schema.type = Type::kIntOrString;
    } else if (type == "string") {
      schema.type = Type::kString;
    } else if (type == "integer") {
      schema.type = Type::kInteger;
    } else if (type == "number") {
      schema.type = Type::kNumber;
    } else if (type == "boolean") {
      schema.type = Type::kBoolean;
    } else if (type == "array") {
      schema.type = Type::kArray;
      return FillItems(json["items"], depth, schema);
    } else if (type == "object") {
      return FillObject(json, depth, schema);
    } else if (type.empty()) {
      // Without a type, properties still say how what is known looks.
      if (!json["properties"].empty()) return FillObject(json, depth, schema);
      schema.type = Type::kAny;
    } else {
      return Error(Reason::kInvalid, "a schema has the unknown type \"{}\"", type);
    }
    return Status::Ok();
  }

  Status FillItems(const Value& items, int depth, Schema& schema) {
    if (items.IsNull()) {
      schema.items = &AnySchema();
      return Status::Ok();
    }
    SchemaBuilder inner(described_ == nullptr ? nullptr : described_->items, shared_);
    ASSIGN_OR_RETURN(std::shared_ptr<Schema> child, inner.Node(items, depth + 1));
    schema.items = child.get();
    schema.owned.push_back(std::move(child));
    return Status::Ok();
  }

  Status FillObject(const Value& json, int depth, Schema& schema) {
    const Value& additional = json["additionalProperties"];
    if (json["properties"].empty() && (additional.IsObject() || additional.AsBool())) {
      schema.type = Type::kMap;
      return FillItems(additional.IsObject() ? additional : Value(), depth, schema);
    }
    schema.type = Type::kObject;
    for (const auto& [name, property] : json["properties"].members()) {
      ASSIGN_OR_RETURN(Field field, Property(name, property, depth, schema));
      AddField(schema, std::move(field));
    }
    for (const Value& name : json["required"].items()) {
      const auto found = schema.index.find(name.AsString());
      if (found != schema.index.end()) schema.fields[found->second].required = true;
    }
    if (schema.embedded_resource) AddTypeAndMetadata(schema, true);
    return Status::Ok();
  }

  Result<Field> Property(const std::string& name, const Value& json, int depth, Schema& parent) {
    const Field* known = described_ == nullptr ? nullptr : described_->Find(name);
    SchemaBuilder inner(known == nullptr ? nullptr : known->schema, shared_);
    ASSIGN_OR_RETURN(std::shared_ptr<Schema> schema, inner.Node(json, depth + 1));
    Field field;
    field.name = name;
    if (known != nullptr) {
      field.support = known->support;
      field.acted_on_values = known->acted_on_values;
      field.loosening_values = known->loosening_values;
    }
    field.schema = schema.get();
    field.description = schema->description;
    field.default_value = json["default"];
    const std::string_view list_type = json["x-kubernetes-list-type"].AsString();
    if (list_type == "set") field.list_type = ListType::kSet;
    if (list_type == "map") field.list_type = ListType::kMap;
    field.list_map_keys = json::ToStrings(json["x-kubernetes-list-map-keys"]);
    parent.owned.push_back(std::move(schema));
    return field;
  }

  const Schema* described_;
  SharedSchemas* shared_;
};

void FillNames(const Value& names, Kind& kind) {
  kind.kind = names["kind"].Str();
  kind.list_kind = names["listKind"].Str(kind.kind + "List");
  kind.plural = names["plural"].Str();
  kind.singular = names["singular"].Str();
  kind.short_names = json::ToStrings(names["shortNames"]);
  kind.categories = json::ToStrings(names["categories"]);
}

void FillVersion(const Value& version, Kind& kind) {
  kind.version = version["name"].Str();
  kind.storage = version["storage"].AsBool();
  const Value& subresources = version["subresources"];
  kind.status_subresource = !subresources["status"].IsNull();
  if (const Value& scale = subresources["scale"]; !scale.IsNull()) {
    kind.scale = std::make_unique<ScaleSubresource>(
        ScaleSubresource{scale["specReplicasPath"].Str(), scale["statusReplicasPath"].Str(),
                         scale["labelSelectorPath"].Str()});
  }
  for (const Value& column : version["additionalPrinterColumns"].items()) {
    kind.columns.push_back({column["name"].Str(), column["type"].Str(), column["format"].Str(),
                            column["description"].Str(), column["jsonPath"].Str(),
                            static_cast<int>(column["priority"].AsInt())});
  }
  for (const Value& field : version["selectableFields"].items()) {
    const std::string_view path = field["jsonPath"].AsString();
    kind.selectable_fields.emplace_back(path.starts_with('.') ? path.substr(1) : path);
  }
}

Result<std::vector<KindPtr>> ReadDefinition(const Value& crd, SharedSchemas* shared) {
  const Value& spec = crd["spec"];
  const std::string_view name = crd["metadata"]["name"].AsString();
  std::vector<KindPtr> kinds;
  for (const Value& version : spec["versions"].items()) {
    if (!version["served"].AsBool()) continue;
    auto kind = std::make_shared<Kind>();
    kind->group = spec["group"].Str();
    kind->custom = true;
    kind->namespaced = spec["scope"].AsString() != "Cluster";
    FillNames(spec["names"], *kind);
    FillVersion(version, *kind);
    SchemaBuilder builder(Registry::BuiltIn().FindMessage(kind->GroupVersion(), kind->kind),
                          shared);
    Result<std::shared_ptr<Schema>> schema = builder.Make(version["schema"]["openAPIV3Schema"], 0);
    if (!schema) {
      return Error(schema.error().WithPrefix(
          fmt::format("customresourcedefinition \"{}\", version \"{}\": ", name, kind->version)));
    }
    if ((*schema)->type == Type::kMap) (*schema)->preserve_unknown = true;
    (*schema)->type = Type::kObject;  // the root is an object, also where its author said nothing
    AddTypeAndMetadata(**schema, false);
    kind->schema = std::move(*schema);
    kinds.push_back(std::move(kind));
  }
  return kinds;
}

// Our own definitions are the largest, and each is read when it is checked, when it commits and at
// every start. What they are made of is shared, and kept; one that somebody changed is read like
// anybody's, and the last such reading is kept, too.
class OwnDefinitions {
 public:
  static OwnDefinitions& Instance() {
    static OwnDefinitions instance;
    return instance;
  }

  bool Has(std::string_view name) const { return read_.contains(name); }

  Result<std::vector<KindPtr>> Read(const Value& crd) {
    const std::lock_guard lock(mutex_);
    Definition& own = read_.find(crd["metadata"]["name"].AsString())->second;
    const bool as_we_wrote_it = own.crd["spec"] == crd["spec"];
    Reading& reading = as_we_wrote_it ? own.ours : own.changed;
    if (!reading.kinds.empty() && reading.spec == crd["spec"]) return reading.kinds;
    ASSIGN_OR_RETURN(std::vector<KindPtr> kinds, as_we_wrote_it ? ReadDefinition(own.crd, &shared_)
                                                                : ReadDefinition(crd, nullptr));
    reading = {as_we_wrote_it ? own.crd["spec"] : crd["spec"], kinds};
    return kinds;
  }

 private:
  struct Reading {
    Value spec;
    std::vector<KindPtr> kinds;
  };
  struct Definition {
    Value crd;
    Reading ours, changed;
  };

  OwnDefinitions() {
    for (const Value& crd : OwnCrds()) read_[crd["metadata"]["name"].Str()].crd = crd;
  }

  std::mutex mutex_;
  std::map<std::string, Definition, std::less<>> read_;  // by the definition's name
  SharedSchemas shared_;
};

}  // namespace

Result<SchemaPtr> SchemaFromJson(const Value& json_schema) {
  ASSIGN_OR_RETURN(std::shared_ptr<Schema> schema, SchemaBuilder(nullptr).Node(json_schema, 0));
  return SchemaPtr(std::move(schema));
}

Result<std::vector<KindPtr>> KindsFromCrd(const Value& crd) {
  const std::string_view name = crd["metadata"]["name"].AsString();
  OwnDefinitions& own = OwnDefinitions::Instance();
  return own.Has(name) ? own.Read(crd) : ReadDefinition(crd, nullptr);
}

}  // namespace muster::schema
