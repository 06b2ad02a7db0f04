// src/schema/conform.h
//
// Conform: makes a decoded JSON object what upstream's typed decoding would have made of it. One
// walk along the schema checks JSON types, reports and drops unknown fields, drops nulls and
// (built-in kinds) empty values that Go's omitempty leaves out, and writes quantities and times in
// their canonical form.
//
//   std::vector<std::string> unknown;
//   Result<json::Value> pod = Conform(kind, object, &unknown);   // BadRequest: a type is wrong
//   // fieldValidation=Strict: 400 StrictDecodingError(kind, unknown, notes.duplicate_keys)
//   // fieldValidation=Warn: a Warning header for each of StrictDecodingWarnings(...)
//
// Thread: any (pure functions). An object that needs no change comes back sharing its storage.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "json/value.h"
#include "schema/kind.h"
#include "schema/schema.h"

namespace muster::schema {

inline constexpr size_t kMaxReportedFields = 100;  // unknown fields that one answer lists

struct ConformOptions {
  // Custom resources keep empty values as written, upstream's built-in types do not.
  bool drop_empty = true;
  // Custom resources are checked later, by ValidateStructural, with field causes.
  bool check_types = true;
};

// An object as a client sent it. The message of a BadRequest is whole: `Pod in version "v1" cannot
// be handled as a Pod: json: cannot unmarshal string into Go struct field PodSpec.spec.containers
// of type []v1.Container`. `unknown` (may be nullptr) gets paths such as "spec.containers[0].foo".
Result<json::Value> Conform(const Kind& kind, const json::Value& object,
                            std::vector<std::string>* unknown);
// Part of an object, or a message that is no kind (DeleteOptions).
Result<json::Value> Conform(const Schema& schema, const json::Value& value,
                            const ConformOptions& options, std::vector<std::string>* unknown);

// BadRequest: `strict decoding error: unknown field "spec.foo", duplicate field "spec.bar"`. OK
// when both are empty.
Status StrictDecodingError(const Kind& kind, const std::vector<std::string>& unknown,
                           const std::vector<std::string>& duplicates);
// `unknown field "spec.foo"`, `duplicate field "spec.bar"`: one Warning header each.
std::vector<std::string> StrictDecodingWarnings(const std::vector<std::string>& unknown,
                                                const std::vector<std::string>& duplicates);

}  // namespace muster::schema
