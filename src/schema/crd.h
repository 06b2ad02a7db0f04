// src/schema/crd.h
//
// CustomResourceDefinition -> Kinds: each served version's structural OpenAPI v3 schema becomes a
// Schema tree, so that custom resources take the same way as built-in ones.
//
// Thread: any (pure functions).

#pragma once

#include <vector>

#include "base/status.h"
#include "json/value.h"
#include "schema/kind.h"

namespace muster::schema {

inline constexpr int kMaxSchemaDepth = 100;  // nesting of a CRD's schema; deeper is Invalid
// Of all patterns of a CRD, as RE2 compiles them.
inline constexpr size_t kMaxPatternInstructions = 100'000;
// Matching one object against its patterns: instructions times characters. RE2 has no exponential
// case, but a long text against a large pattern still takes that many steps.
inline constexpr size_t kMaxPatternSteps = 10'000'000;

// One Kind per served version, the stored one with storage = true. REQUIRES: a CRD that Validate
// accepts; what it would refuse is answered with Invalid.
Result<std::vector<KindPtr>> KindsFromCrd(const json::Value& crd);

// One JSON schema as a CRD holds it. Invalid where it nests too deep or names an unknown type.
Result<SchemaPtr> SchemaFromJson(const json::Value& json_schema);

// Types, bounds, enums, patterns, required fields of a custom resource, in upstream's words:
// `spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer:
// "string"`. `path`: where `value` stands; "" for a whole object.
std::vector<StatusCause> ValidateStructural(const Schema& schema, const json::Value& value,
                                            std::string_view path = "");

}  // namespace muster::schema
