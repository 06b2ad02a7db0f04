// CustomResourceDefinition: k8s.io/apiextensions-apiserver pkg/apis/apiextensions/validation, and
// the rules of structural schemas. crd.cc reads what passes here.

#include <algorithm>
#include <array>
#include <set>

#include "base/strings.h"
#include "schema/validation/kind_validation.h"

namespace muster::schema {
namespace {

using json::Value;

constexpr std::string_view kSimplePath = "must be a simple json path starting with .";

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

void ValidatePrinterColumn(const Value& column, const Path& path, FieldErrors& errors) {
  constexpr std::array<std::string_view, 5> kTypes = {"boolean", "date", "integer", "number",
                                                      "string"};
  constexpr std::string_view kRule = "must be one of boolean,date,integer,number,string";
  if (column["name"].AsString().empty()) errors.Required(path.Child("name"));
  const std::string_view type = column["type"].AsString();
  if (type.empty()) {
    errors.Required(path.Child("type"), kRule);
  } else if (std::ranges::find(kTypes, type) == kTypes.end()) {
    errors.Invalid(path.Child("type"), type, kRule);
  }
  const Value& json_path = column["jsonPath"];
  if (json_path.AsString().empty()) {
    errors.Required(path.Child("JSONPath"));
  } else if (!json_path.AsString().starts_with('.')) {
    errors.Invalid(path.Child("JSONPath"), json_path, kSimplePath);
  }
}

// Where replicas stand: `required` unless it is the selector's place.
void ValidateScalePath(const Value& text, std::string_view below, bool required, const Path& path,
                       FieldErrors& errors) {
  if (text.AsString().empty()) {
    if (required) errors.Required(path);
  } else if (!text.AsString().starts_with('.')) {
    errors.Invalid(path, text, kSimplePath);
  } else if (!text.AsString().starts_with(fmt::format(".{}.", below))) {
    errors.Invalid(path, text, fmt::format("should be a json path under .{}", below));
  }
}

void ValidateSubresources(const Value& subresources, const Path& path, FieldErrors& errors) {
  const Value& scale = subresources["scale"];
  if (scale.IsNull()) return;
  ValidateScalePath(scale["specReplicasPath"], "spec", true, path.Child("scale.specReplicasPath"),
                    errors);
  ValidateScalePath(scale["statusReplicasPath"], "status", true,
                    path.Child("scale.statusReplicasPath"), errors);
  ValidateScalePath(scale["labelSelectorPath"], "status", false,
                    path.Child("scale.labelSelectorPath"), errors);
}

// What the versions have in common stands at the top for the API server, and is named there.
bool IsShared(const Value& versions, const char* key) {
  const Value& first = versions.At(0)[key];
  return !first.empty() &&
         std::ranges::all_of(versions.items(), [&](const Value& v) { return v[key] == first; });
}

void ValidateVersion(const Value& version, const Path& path, FieldErrors& errors) {
  const std::string_view warning = version["deprecationWarning"].AsString();
  if (!version["deprecationWarning"].IsNull() && !version["deprecated"].AsBool())
    errors.Invalid(path.Child("deprecationWarning"), warning,
                   "can only be set for deprecated versions");
  const Path schema = path.Child("schema");
  if (version["schema"]["openAPIV3Schema"].IsNull())
    errors.Required(schema.Child("openAPIV3Schema"), "schemas are required");
}

void ValidateParts(const Value& version, const Path& schema, const Path& subresources,
                   const Path& columns, bool with_schema, bool with_subresources, bool with_columns,
                   size_t& pattern_size, FieldErrors& errors) {
  const Value& root = version["schema"]["openAPIV3Schema"];
  if (with_schema && !root.IsNull())
    ValidateRootSchema(root, schema.Child("openAPIV3Schema"), pattern_size, errors);
  if (with_subresources) ValidateSubresources(version["subresources"], subresources, errors);
  const Value& list = version["additionalPrinterColumns"];
  for (size_t i = 0; with_columns && i < list.size(); ++i)
    ValidatePrinterColumn(list.At(i), columns.Index(i), errors);
}

void ValidateVersions(const Value& versions, const Path& spec, FieldErrors& errors) {
  const Path path = spec.Child("versions");
  const bool schema = IsShared(versions, "schema");
  const bool subresources = IsShared(versions, "subresources");
  const bool columns = IsShared(versions, "additionalPrinterColumns");
  std::set<std::string> names;
  int stored = 0;
  bool unique = true;
  size_t pattern_size = 0;
  for (size_t i = 0; i < versions.size(); ++i) {
    const Value& version = versions.At(i);
    const Path place = path.Index(i);
    errors.Check(CheckDns1035Label, place.Child("name"), version["name"].AsString());
    unique = names.insert(version["name"].Str()).second && unique;
    stored += version["storage"].AsBool() ? 1 : 0;
    ValidateVersion(version, place, errors);
    ValidateParts(version, place.Child("schema"), place.Child("subresources"),
                  place.Child("additionalPrinterColumns"), !schema, !subresources, !columns,
                  pattern_size, errors);
  }
  ValidateParts(versions.At(0), spec.Child("validation"), spec.Child("subresources"),
                spec.Child("additionalPrinterColumns"), schema, subresources, columns, pattern_size,
                errors);
  if (!unique) errors.Invalid(path, versions, "must contain unique version names");
  if (stored != 1)
    errors.Invalid(path, versions, "must have exactly one version marked as storage version");
}

void ValidateConversion(const Value& conversion, const Path& path, FieldErrors& errors) {
  if (conversion.IsNull() ||
      !errors.OneOf(path.Child("strategy"), conversion["strategy"], {"None", "Webhook"})) {
    return;
  }
  if (conversion["strategy"].AsString() != "Webhook") return;
  if (conversion["webhook"]["clientConfig"].IsNull())
    errors.Required(path.Child("webhookClientConfig"), "required when strategy is set to Webhook");
  if (conversion["webhook"]["conversionReviewVersions"].empty())
    errors.Required(path.Child("conversionReviewVersions"));
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
  if (spec["scope"].AsString().empty()) {
    errors.Required(path.Child("scope"));
  } else {
    errors.OneOf(path.Child("scope"), spec["scope"], {"Cluster", "Namespaced"});
  }
  ValidateNames(spec["names"], path.Child("names"), errors);
  ValidateVersions(spec["versions"], path, errors);
  ValidateConversion(spec["conversion"], path.Child("conversion"), errors);
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
  const Path status("status");
  const Path list = status.Child("storedVersions");
  const Value& stored = before["status"]["storedVersions"];
  for (size_t i = 0; i < stored.size(); ++i) {
    const auto& versions = after["spec"]["versions"].items();
    if (std::ranges::any_of(versions, [&](const Value& v) { return v["name"] == stored.At(i); }))
      continue;
    errors.Invalid(list.Index(i), stored.At(i),
                   fmt::format("missing from spec.versions; {0} was previously a storage version, "
                               "and must remain in spec.versions until a storage migration ensures "
                               "no data remains persisted in {0} and removes {0} from "
                               "status.storedVersions",
                               stored.At(i).AsString()));
  }
}

}  // namespace muster::schema
