// src/schema/label_selector.h
//
// LabelSelector: which label sets are meant. From the text of a query (`a=b,c!=d,e in (x,y),!f,g`)
// or from a metav1.LabelSelector object (matchLabels, matchExpressions). Rules and messages:
// k8s.io/apimachinery pkg/labels.
//
// Life cycle: an immutable value.
// Thread:     any.
// Invariants: all requirements must hold; without any, everything matches.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "json/value.h"

namespace muster::schema {

inline constexpr size_t kMaxSelectorRequirements = 250;  // more is a BadRequest

enum class LabelOperator : uint8_t { kIn, kNotIn, kExists, kDoesNotExist, kGreaterThan, kLessThan };

struct LabelRequirement {
  std::string key;
  LabelOperator op = LabelOperator::kExists;
  std::vector<std::string>
      values;  // sorted, unique; `=` and `==` are kIn with one value, `!=` is kNotIn with one

  // `value`: the label's value, nullopt if the label is absent.
  bool Matches(std::optional<std::string_view> value) const;
  bool operator==(const LabelRequirement&) const = default;
};

class LabelSelector {
 public:
  LabelSelector() = default;  // everything
  explicit LabelSelector(std::vector<LabelRequirement> requirements)
      : requirements_(std::move(requirements)) {}
  static LabelSelector Nothing();

  // BadRequest in upstream's words: "unable to parse requirement: found '=', expected: identifier".
  static Result<LabelSelector> Parse(std::string_view text);
  // A metav1.LabelSelector. null selects nothing, {} everything (metav1.LabelSelectorAsSelector).
  static Result<LabelSelector> FromJson(const json::Value& selector);
  // A plain map of labels, as in Service.spec.selector: null or empty selects nothing.
  static LabelSelector FromMap(const json::Value& labels);

  bool empty() const { return requirements_.empty() && !nothing_; }  // selects everything
  bool selects_nothing() const { return nothing_; }
  const std::vector<LabelRequirement>& requirements() const { return requirements_; }

  // `labels`: a JSON object of strings (metadata.labels), or null.
  bool Matches(const json::Value& labels) const;
  // `find(key)` gives std::optional<std::string_view>: for labels kept in another form.
  template <class Find>
  bool MatchesBy(Find&& find) const {
    if (nothing_) return false;
    for (const LabelRequirement& requirement : requirements_) {
      if (!requirement.Matches(find(std::string_view(requirement.key)))) return false;
    }
    return true;
  }

  // The canonical text, which Parse reads back: "a=b,c notin (d,e),!f".
  std::string ToString() const;
  bool operator==(const LabelSelector&) const = default;

 private:
  std::vector<LabelRequirement> requirements_;
  bool nothing_ = false;
};

}  // namespace muster::schema
