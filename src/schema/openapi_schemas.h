// src/schema/openapi_schemas.h
//
// The component schemas of an OpenAPI v3 document (openapi_v3.h), collected from the kinds it
// serves.
//
// Life cycle: one collector per document.
// Thread:     not shared.

#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"
#include "schema/kind.h"

namespace muster::schema {

class OpenApiSchemas {
 public:
  // The kind, its list, and all that they refer to.
  void AddKind(const Kind& kind);
  // A named schema of the registry and all that it refers to, by its OpenAPI name.
  void AddNamed(std::string_view name);

  // {name: schema}, sorted by name.
  json::Value Take();

 private:
  void AddCustomKind(const Kind& kind);
  void AddListOf(const Kind& kind);
  void AddReferences(const Schema& schema);
  void AddSchema(const Schema& schema, json::Value extra_gvk);

  std::map<std::string, json::Value> schemas_;
};

// {"$ref": "#/components/schemas/NAME"}.
json::Value ComponentRef(std::string_view name);
// {"group": ..., "kind": ..., "version": ...} as x-kubernetes-group-version-kind carries it.
json::Value GroupVersionKind(std::string_view group, std::string_view version,
                             std::string_view kind);

}  // namespace muster::schema
