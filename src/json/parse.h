// src/json/parse.h
//
// JSON and YAML text -> Value. simdjson and yaml-cpp stay behind this header.
//
// Thread: any (pure functions).

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "json/value.h"

namespace muster::json {

inline constexpr int kMaxDepth = 512;  // nesting that we accept; deeper input is BadRequest
// Of a server's answer: the deepest object may stand in a list, a table or a watch event.
inline constexpr int kMaxAnswerDepth = kMaxDepth + 4;
inline constexpr size_t kMaxYamlNodes =
    2'000'000;  // of one YAML stream, aliases counted as what they stand for

struct ParseNotes {
  // JSON paths of keys that occur twice in one object, e.g. "spec.containers[0].name"; the last
  // value won.
  std::vector<std::string> duplicate_keys;
};

// One JSON document, nothing after it. BadRequest with line and column. Integers of any length and
// 1e400 are kept as written; lone surrogates and bytes that are not UTF-8 become U+FFFD, as in Go.
Result<Value> Parse(std::string_view text, ParseNotes* notes = nullptr, int max_depth = kMaxDepth);

// All documents of a YAML stream ("---" between them), empty ones left out; JSON is YAML. YAML 1.1
// scalars as sigs.k8s.io/yaml reads them (unquoted yes/no/on/off/true/false are booleans, 0o17 and
// 017 octal). Anchors are expanded within a bound; merge keys (<<) work.
Result<std::vector<Value>> ParseYaml(std::string_view text, ParseNotes* notes = nullptr);

}  // namespace muster::json
