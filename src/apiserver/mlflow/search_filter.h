// src/apiserver/mlflow/search_filter.h
//
// SearchFilter: MLflow's filter strings ("name LIKE 'dig%' AND tags.team = 'vision' AND
// metrics.loss < 0.3") and its order_by.
//
// Life cycle: a value.
// Thread:     any.

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "json/value.h"

namespace muster::apiserver {

inline constexpr size_t kMaxFilterBytes = 4096;
inline constexpr size_t kMaxFilterTerms = 32;
inline constexpr size_t kMaxOrderTerms = 8;
// Letters that the LIKE and ILIKE of one search may look at: the loop waits for it.
inline constexpr size_t kMaxLikeSteps = 2'000'000;

// What an object has under "name", "tags.team", "params.rate", "metrics.loss": a text, a number, or
// null. Nothing if no object of its kind has such a field.
using FieldLookup =
    std::function<std::optional<json::Value>(const json::Value& object, const std::string& field)>;

struct FilterTerm {
  std::string field;
  std::string comparison;  // = != < <= > >= LIKE ILIKE IN
  std::vector<json::Value> values;
};

class SearchFilter {
 public:
  // Invalid, with what was expected.
  static Result<SearchFilter> Parse(std::string_view text);

  // Those that hold. Invalid if there is no such field, or the patterns take too long.
  Result<json::Array> Apply(json::Array objects, const FieldLookup& lookup) const;
  // The text that `field` must equal; "" if the filter does not say.
  std::string Equal(std::string_view field) const;

 private:
  std::vector<FilterTerm> terms_;
};

// Objects as `order_by` (strings such as "metrics.loss DESC") wants them; those that lack a field
// come last. Equal ones stay as they are. Invalid if there is no such field.
Result<json::Array> Ordered(json::Array objects, const json::Value& order_by,
                            const FieldLookup& lookup);

}  // namespace muster::apiserver
