// src/apiserver/table/json_path.h
//
// JsonPath: the subset of k8s.io/client-go/util/jsonpath that additionalPrinterColumns use: .a.b,
// ['a.b'], [0], [-1], [1:3], [-1:], [*], [?(@.type=="Ready")] with ==, !=, <, <=, >, >=, and `\.`
// inside a name.
//
// Life cycle: parsed once per column, immutable.
// Thread:     any.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "json/value.h"

namespace muster::apiserver {

inline constexpr size_t kMaxJsonPathSteps = 64;

class JsonPath {
 public:
  // With or without a leading '.' or surrounding braces. BadRequest names what was not understood.
  static Result<JsonPath> Parse(std::string_view text);

  // All values that the path leads to, in document order.
  std::vector<json::Value> Find(const json::Value& root) const;

 private:
  enum class Type : uint8_t { kField, kIndex, kSlice, kAll, kFilter };
  struct Step {
    Type type = Type::kField;
    std::string name;            // kField
    int64_t index = 0;           // kIndex, start of kSlice; negative counts from the end
    std::optional<int64_t> end;  // kSlice: before this; nullopt: to the end
    std::vector<Step> left;      // kFilter: path below @
    std::string comparison;      // kFilter: "==", ...; "" asks for existence
    json::Value right;           // kFilter
  };
  static Status ParseSteps(std::string_view text, std::vector<Step>& steps);
  static Status ParseBracket(std::string_view inside, std::vector<Step>& steps);
  static bool ParseSlice(std::string_view text, Step& step);
  static Status ParseFilter(std::string_view text, Step& step);
  static std::vector<json::Value> Walk(const std::vector<Step>& steps, const json::Value& root);
  static void Take(const Step& step, const json::Value& from, std::vector<json::Value>& out);
  static bool Holds(const Step& filter, const json::Value& item);

  std::vector<Step> steps_;
};

}  // namespace muster::apiserver
