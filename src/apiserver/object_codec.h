// src/apiserver/object_codec.h
//
// Bodies -> trees: JSON, YAML and protobuf by Content-Type, then what upstream's typed decoding
// does (unknown and duplicate fields, JSON types, canonical values).
//
// Thread: any (pure functions).

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apiserver/call.h"
#include "base/status.h"
#include "json/value.h"
#include "schema/kind.h"

namespace muster::apiserver {

inline constexpr size_t kMaxObjectBytes = 3 * 1024 * 1024;  // a larger body is 413
// Of a body in YAML: reading it takes longer than its length, and the loop waits. Larger: 413.
inline constexpr size_t kMaxYamlBodyBytes = 256 * 1024;

struct DecodedBody {
  json::Value value;
  std::vector<std::string> duplicate_keys;
};
// UnsupportedMediaType, BadRequest or RequestEntityTooLarge.
Result<DecodedBody> DecodeBody(std::string_view content_type, const net::Request& request);

enum class FieldValidation : uint8_t { kIgnore, kWarn, kStrict };
Result<FieldValidation> FieldValidationOf(const RequestInfo& info);

// The object in the body of a POST or PUT, which conforms to `kind`, in the version that is stored.
// Unknown and duplicate fields become an error or warnings of the call, as fieldValidation says.
Result<json::Value> DecodeObject(Call& call, const schema::Kind& kind);
// The same for a tree that is already there (the result of a patch).
Result<json::Value> ConformObject(Call& call, const schema::Kind& kind, const json::Value& object,
                                  const std::vector<std::string>& duplicate_keys);

// A kind of which objects are sent and not stored, so that the registry of kinds does not have it.
schema::Kind UnservedKind(std::string_view group, std::string_view version, std::string_view kind);

// dryRun=All; Invalid for another value.
Result<bool> DryRunOf(const RequestInfo& info, std::string_view options);

}  // namespace muster::apiserver
