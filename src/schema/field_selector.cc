#include "schema/field_selector.h"

#include <algorithm>
#include <optional>

namespace muster::schema {
namespace {

// The terms between commas that no backslash protects.
std::vector<std::string_view> Terms(std::string_view text) {
  std::vector<std::string_view> terms;
  size_t start = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '\\') {
      ++i;
    } else if (i >= text.size() || text[i] == ',') {
      terms.push_back(text.substr(start, i - start));
      start = i + 1;
    }
  }
  if (start < text.size()) terms.push_back(text.substr(start));  // ends in a backslash
  return terms;
}

Result<std::string> Unescape(std::string_view value) {
  std::string text;
  for (size_t i = 0; i < value.size(); ++i) {
    if (value[i] == '\\') {
      if (i + 1 == value.size() ||
          std::string_view("\\,=").find(value[i + 1]) == std::string_view::npos) {
        return Error(Reason::kBadRequest, "invalid field selector: invalid escape sequence: {}",
                     value.substr(i, 2));
      }
      ++i;
    } else if (value[i] == ',' || value[i] == '=') {
      return Error(Reason::kBadRequest, "invalid field selector: unescaped character in value: {}",
                   static_cast<int>(value[i]));
    }
    text.push_back(value[i]);
  }
  return text;
}

std::optional<FieldTerm> SplitTerm(std::string_view term, std::string_view& value) {
  for (size_t i = 0; i < term.size(); ++i) {
    if (term[i] == '\\') {
      ++i;
      continue;
    }
    const std::string_view rest = term.substr(i);
    const bool negated = rest.starts_with("!=");
    const size_t size = negated || rest.starts_with("==") ? 2 : rest.starts_with('=') ? 1 : 0;
    if (size == 0) continue;
    value = rest.substr(size);
    return FieldTerm{std::string(term.substr(0, i)), "", negated};
  }
  return std::nullopt;
}

}  // namespace

Result<FieldSelector> FieldSelector::Parse(std::string_view text) {
  FieldSelector selector;
  for (const std::string_view part : Terms(text)) {
    if (part.empty()) continue;
    std::string_view value;
    std::optional<FieldTerm> term = SplitTerm(part, value);
    if (!term)
      return Error(Reason::kBadRequest, "invalid selector: '{}'; can't understand '{}'", text,
                   part);
    ASSIGN_OR_RETURN(term->value, Unescape(value));
    selector.terms_.push_back(std::move(*term));
    if (selector.terms_.size() > kMaxFieldTerms) {
      return Error(Reason::kBadRequest, "a field selector may have at most {} terms",
                   kMaxFieldTerms);
    }
  }
  return selector;
}

Status FieldSelector::CheckSelectable(const Kind& kind) const {
  for (const FieldTerm& term : terms_) {
    if (term.field == "metadata.name" || term.field == "metadata.namespace") continue;
    const auto& fields = kind.selectable_fields;
    if (std::find(fields.begin(), fields.end(), term.field) != fields.end()) continue;
    // Upstream words it by whether the kind has fields of its own to select by.
    if (!fields.empty())
      return Error(Reason::kBadRequest, "field label not supported: {}", term.field);
    return Error(
        Reason::kBadRequest,
        "\"{}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
        term.field);
  }
  return Status::Ok();
}

}  // namespace muster::schema
