// src/schema/type_names.h
//
// What JSON Schema calls the kinds of JSON values and our types.
//
// Thread: any (pure functions).

#pragma once

#include <string_view>

#include "json/value.h"
#include "schema/schema.h"

namespace muster::schema {

// "null", "boolean", "number", "string", "array", "object".
std::string_view JsonKindName(json::Kind kind);
// The `type` of a value of this type, one that has a single one: "string" for quantities and times.
std::string_view OpenApiTypeName(Type type);

}  // namespace muster::schema
