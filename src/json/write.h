// src/json/write.h
//
// Value -> JSON or YAML text. Compact JSON is what Go's encoding/json writes for the same tree, in
// our key order (<, >, & and U+2028/9 escaped as Go does), so bytes can be compared with
// upstream's.
//
// Thread: any (pure functions).

#pragma once

#include <string>

#include "json/value.h"

namespace muster::json {

std::string Write(const Value& value);
void AppendTo(std::string& out, const Value& value);
void AppendString(std::string& out, std::string_view text);  // quoted and escaped
// Indented like Go's MarshalIndent, keys in our order, no newline at the end. kubectl -o json
// prints sorted keys and a newline: WritePretty(SortKeys(value)) + "\n".
std::string WritePretty(const Value& value, int indent = 4);
// As kubectl -o yaml: keys sorted as sigs.k8s.io/yaml sorts them, a newline at the end.
std::string WriteYaml(const Value& value);

}  // namespace muster::json
