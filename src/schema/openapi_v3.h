// src/schema/openapi_v3.h
//
// The OpenAPI v3 document of one group and version, as /openapi/v3/... serves it: component schemas
// with x-kubernetes-group-version-kind, merge keys, defaults, allowed values and descriptions, and
// one path item per resource whose operations carry the kind, the action and the query parameters
// that kubectl looks for (fieldValidation, dryRun, fieldManager).
//
// Thread: any (pure functions). Documents are large (core: about 600 KB); callers keep the bytes
// and their hash.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"
#include "schema/kind.h"

namespace muster::schema {

// Subresources that a built-in kind has beside `status`, by plural: {"pods", {"log", "binding",
// ...}} come from the API server; each gets a path item.
struct Subresource {
  std::string name;  // "binding"
  std::vector<std::string>
      verbs;  // HTTP methods, lower case: "get", "post", "put", "patch", "delete"
  std::string group, version, kind;  // of the body: "", "v1", "Binding"; empty kind: text
};

struct OpenApiKind {
  KindPtr kind;
  std::vector<Subresource> subresources;
};

// REQUIRES: all kinds of one group and version, built-in or custom (custom ones publish
// Schema::source).
json::Value OpenApiV3(std::string_view group, std::string_view version,
                      const std::vector<OpenApiKind>& kinds);

// "api/v1" or "apis/GROUP/VERSION": the key in the index at /openapi/v3.
std::string OpenApiPath(std::string_view group, std::string_view version);
// "org.kubeflow.v1.PyTorchJob": the name of a kind's component schema.
std::string ComponentName(const Kind& kind);

// A schema as a component, without following references ($ref stands for named ones).
json::Value ComponentSchema(const Schema& schema);

}  // namespace muster::schema
