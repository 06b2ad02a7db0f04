// src/json/write.h
//
// Value -> JSON or YAML text. Compact JSON is what Go's encoding/json writes for the same tree, in our key order
// (<, >, & and U+2028/9 escaped as Go does), so bytes can be compared with upstream's.

#pragma once

#include <string>

#include "json/value.h"

namespace muster::json {

std::string Write(const Value& value);
void AppendTo(std::string& out, const Value& value);
void AppendString(std::string& out, std::string_view text);  // quoted and escaped
std::string WritePretty(const Value& value, int indent = 4);  // as kubectl -o json
std::string WriteYaml(const Value& value);                    // as kubectl -o yaml

}  // namespace muster::json
