// src/json/yaml_scalar.h
//
// Private to src/json: what a plain (unquoted) YAML 1.1 scalar means to the Go YAML library behind
// sigs.k8s.io/yaml, for reading and for deciding what must be quoted.
//
// Thread: any (pure functions).

#pragma once

#include <string_view>

#include "json/value.h"

namespace muster::json {

// true, 12, 1.5, null or the string itself. NaN and infinities have no JSON: they stay strings.
Value ResolvePlainScalar(std::string_view text);
// Whether a string with this text must be quoted, or a reader would take it for something else.
bool LooksLikeOtherThanString(std::string_view text);

}  // namespace muster::json
