// src/serving/graph_condition.h
//
// Conditions of InferenceGraph steps: a path into a JSON text that must be there. The part of GJSON
// (github.com/tidwall/gjson SYNTAX.md) that upstream's examples use:
//
//   a.b.0                          members and indexes
//   [@this].#(a.b=="x")            the first of a list for which it holds; == != < <= > >=
//
// Thread: any (pure).

#pragma once

#include <cstddef>
#include <string_view>

#include "base/status.h"
#include "json/value.h"

namespace muster::serving {

inline constexpr size_t kMaxConditionBytes = 1024;

// Invalid: it is not of the part above, or longer than kMaxConditionBytes.
Status CheckGraphCondition(std::string_view condition);
// Invalid as above, if it comes to what is not understood.
Result<bool> GraphConditionHolds(std::string_view condition, const json::Value& value);

}  // namespace muster::serving
