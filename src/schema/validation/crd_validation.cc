// CustomResourceDefinition: k8s.io/apiextensions-apiserver pkg/apis/apiextensions/validation, and
// the rules of structural schemas. crd.cc reads what passes here.

#include <array>
#include <set>

#include "base/strings.h"
#include "schema/crd.h"
#include "schema/validation/kind_validation.h"

namespace muster::schema {
namespace {

using json::Value;

void ValidateNames(const Value& names, const Path& path, FieldErrors& errors) {
  for (const char* key : {"plural", "singular"}) {
    if (!names[key].AsString().empty())
      errors.Check(CheckDns1035Label, path.Child(key), names[key]);
  }
  if (names["plural"].AsString().empty()) errors.Required(path.Child("plural"));
  for (const char* key : {"kind", "listKind"}) {
    const std::string lower = ToLower(names[key].AsString());
    if (lower.empty()) {
      errors.Required(path.Child(key));
      continue;
    }
    Problems problems;
    CheckDns1035Label(lower, problems);
    for (const std::string& problem : problems) {
      errors.Invalid(path.Child(key), names[key],
                     "may have mixed case, but should otherwise match: " + problem);
    }
  }
  if (names["kind"] == names["listKind"] && !names["kind"].IsNull()) {
    errors.Invalid(path.Child("listKind"), names["listKind"],
                   "kind and listKind may not be the same");
  }
  for (const char* key : {"shortNames", "categories"}) {
    const Path list = path.Child(key);
    for (size_t i = 0; i < names[key].size(); ++i)
      errors.Check(CheckDns1035Label, list.Index(i), names[key].At(i));
  }
}

// One node of a schema: structural schemas give every value a type.
void ValidateSchemaNode(const Value& schema, const Path& path, int depth, FieldErrors& errors) {
  if (depth > kMaxSchemaDepth)
    return errors.Forbidden(path,
                            fmt::format("schemas may be at most {} levels deep", kMaxSchemaDepth));
  static const std::vector<std::string_view> kTypes = {"array",  "boolean", "integer",
                                                       "number", "object",  "string"};
  const bool open = schema["x-kubernetes-preserve-unknown-fields"].AsBool() ||
                    schema["x-kubernetes-int-or-string"].AsBool();
  const Value& type = schema["type"];
  if (type.AsString().empty()) {
    if (!open) errors.Required(path.Child("type"), "must not be empty for specified object fields");
  } else {
    errors.OneOf(path.Child("type"), type, kTypes);
  }
  if (!schema["properties"].IsNull() && schema["additionalProperties"].IsObject()) {
    errors.Forbidden(path.Child("additionalProperties"),
                     "additionalProperties and properties are mutual exclusive");
  }
  if (type.AsString() == "array" && schema["items"].IsNull())
    errors.Required(path.Child("items"), "must be specified");
  if (!schema["items"].IsNull())
    ValidateSchemaNode(schema["items"], path.Child("items"), depth + 1, errors);
  if (schema["additionalProperties"].IsObject()) {
    ValidateSchemaNode(schema["additionalProperties"], path.Child("additionalProperties"),
                       depth + 1, errors);
  }
  const Path properties = path.Child("properties");
  for (const auto& [name, property] : schema["properties"].members()) {
    // The types of these two are the API's own.
    if (depth == 0 && (name == "metadata" || name == "apiVersion" || name == "kind")) continue;
    ValidateSchemaNode(property, properties.Key(name), depth + 1, errors);
  }
}

void ValidateVersions(const Value& versions, const Path& path, FieldErrors& errors) {
  std::set<std::string> names;
  int stored = 0;
  for (size_t i = 0; i < versions.size(); ++i) {
    const Value& version = versions.At(i);
    const Path place = path.Index(i);
    errors.Check(CheckDns1035Label, place.Child("name"), version["name"]);
    if (!names.insert(version["name"].Str()).second)
      errors.Invalid(path, versions, "must contain unique version names");
    stored += version["storage"].AsBool() ? 1 : 0;
    const Value& schema = version["schema"]["openAPIV3Schema"];
    const Path schema_parent = place.Child("schema");
    const Path schema_path = schema_parent.Child("openAPIV3Schema");
    if (schema.IsNull()) {
      errors.Required(schema_path, "schemas are required");
      continue;
    }
    if (schema["type"].AsString() != "object" && !schema["type"].IsNull()) {
      errors.Invalid(schema_path.Child("type"), schema["type"], "must be object at the root");
    }
    ValidateSchemaNode(schema, schema_path, 0, errors);
    const Path columns = place.Child("additionalPrinterColumns");
    for (size_t j = 0; j < version["additionalPrinterColumns"].size(); ++j) {
      const Value& column = version["additionalPrinterColumns"].At(j);
      const Path of_column = columns.Index(j);
      if (column["name"].AsString().empty()) errors.Required(of_column.Child("name"));
      if (column["jsonPath"].AsString().empty()) errors.Required(of_column.Child("JSONPath"));
      errors.OneOf(of_column.Child("type"), column["type"],
                   {"boolean", "date", "integer", "number", "string"});
    }
  }
  if (stored != 1)
    errors.Invalid(path, versions, "must have exactly one version marked as storage version");
}

}  // namespace

void ValidateCustomResourceDefinition(const Value& crd, FieldErrors& errors) {
  const Value& spec = crd["spec"];
  const Path path("spec");
  const Value& group = spec["group"];
  const std::string_view group_name = group.AsString();
  if (group_name.empty()) {
    errors.Required(path.Child("group"));
  } else if (errors.Check(CheckDns1123Subdomain, path.Child("group"), group) &&
             group_name.find('.') == std::string_view::npos) {
    errors.Invalid(path.Child("group"), group, "should be a domain with at least one dot");
  }
  const std::string expected = fmt::format("{}.{}", spec["names"]["plural"].AsString(), group_name);
  if (crd["metadata"]["name"].AsString() != expected) {
    const Path metadata("metadata");
    errors.Invalid(metadata.Child("name"), crd["metadata"]["name"],
                   "must be spec.names.plural+\".\"+spec.group");
  }
  errors.OneOf(path.Child("scope"), spec["scope"], {"Cluster", "Namespaced"});
  ValidateNames(spec["names"], path.Child("names"), errors);
  ValidateVersions(spec["versions"], path.Child("versions"), errors);
}

void ValidateCustomResourceDefinitionUpdate(const Value& before, const Value& after,
                                            FieldErrors& errors) {
  const Path path("spec");
  const auto keep = [&](const char* key) {
    if (!(before["spec"][key] == after["spec"][key]))
      errors.Invalid(path.Child(key), after["spec"][key], kImmutable);
  };
  keep("group");
  keep("scope");
  const Path names = path.Child("names");
  for (const char* key : {"plural", "kind"}) {
    if (!(before["spec"]["names"][key] == after["spec"]["names"][key]))
      errors.Invalid(names.Child(key), after["spec"]["names"][key], kImmutable);
  }
}

}  // namespace muster::schema
