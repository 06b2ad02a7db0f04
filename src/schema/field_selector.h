// src/schema/field_selector.h
//
// FieldSelector: `metadata.name=x,status.phase!=Failed`. Rules and messages: k8s.io/apimachinery
// pkg/fields.
//
// Life cycle: an immutable value.
// Thread:     any.
// Invariants: all terms must hold; without any, everything matches.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "schema/kind.h"

namespace muster::schema {

inline constexpr size_t kMaxFieldTerms = 100;  // more is a BadRequest

struct FieldTerm {
  std::string field;
  std::string value;
  bool negated = false;  // !=
};

class FieldSelector {
 public:
  FieldSelector() = default;  // everything

  // BadRequest in upstream's words: "invalid selector: 'x'; can't understand 'x'".
  static Result<FieldSelector> Parse(std::string_view text);

  // BadRequest unless every field is metadata.name, metadata.namespace or one of
  // kind.selectable_fields.
  Status CheckSelectable(const Kind& kind) const;

  bool empty() const { return terms_.empty(); }
  const std::vector<FieldTerm>& terms() const { return terms_; }

  // `find(field)` gives the field's text as std::string_view, "" when it is absent.
  template <class Find>
  bool MatchesBy(Find&& find) const {
    for (const FieldTerm& term : terms_) {
      if ((find(std::string_view(term.field)) == std::string_view(term.value)) == term.negated)
        return false;
    }
    return true;
  }

 private:
  std::vector<FieldTerm> terms_;
};

}  // namespace muster::schema
