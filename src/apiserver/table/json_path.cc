#include "apiserver/table/json_path.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/strings.h"

namespace muster::apiserver {
namespace {

ErrorStatus Malformed(std::string_view text, std::string_view expected) {
  return Error(Reason::kBadRequest, "JSONPath {:?} is not understood: expected {}", text, expected);
}

// A literal of a filter: 'text', "text", a number, true or false.
std::optional<json::Value> ParseLiteral(std::string_view text) {
  if (text.size() >= 2 && (text.front() == '\'' || text.front() == '"') &&
      text.back() == text.front()) {
    return json::Value(text.substr(1, text.size() - 2));
  }
  if (text == "true" || text == "false") return json::Value(text == "true");
  if (const std::optional<int64_t> number = ParseInt(text)) return json::Value(*number);
  return std::nullopt;
}

// The position of the ']' that closes the '[' at `open`; quotes and inner brackets are skipped.
size_t ClosingBracket(std::string_view text, size_t open) {
  int depth = 0;
  char quote = 0;
  for (size_t i = open; i < text.size(); ++i) {
    if (quote != 0) {
      if (text[i] == quote) quote = 0;
    } else if (text[i] == '\'' || text[i] == '"') {
      quote = text[i];
    } else if (text[i] == '[') {
      ++depth;
    } else if (text[i] == ']' && --depth == 0) {
      return i;
    }
  }
  return std::string_view::npos;
}

}  // namespace

Result<JsonPath> JsonPath::Parse(std::string_view text) {
  std::string_view inside = Trim(text);
  if (inside.starts_with('{') && inside.ends_with('}'))
    inside = inside.substr(1, inside.size() - 2);
  if (inside.starts_with('$')) inside.remove_prefix(1);
  JsonPath path;
  RETURN_IF_ERROR(ParseSteps(inside, path.steps_));
  return path;
}

Status JsonPath::ParseSteps(std::string_view text, std::vector<Step>& steps) {
  size_t at = 0;
  while (at < text.size()) {
    if (steps.size() >= kMaxJsonPathSteps) return Malformed(text, "a shorter path");
    if (text[at] == '[') {
      const size_t close = ClosingBracket(text, at);
      if (close == std::string_view::npos) return Malformed(text, "a closing ']'");
      RETURN_IF_ERROR(ParseBracket(Trim(text.substr(at + 1, close - at - 1)), steps));
      at = close + 1;
      continue;
    }
    if (text[at] == '.') ++at;
    std::string name;
    while (at < text.size() && text[at] != '.' && text[at] != '[') {
      if (text[at] == '\\' && at + 1 < text.size()) ++at;
      name += text[at++];
    }
    if (name.empty() && at < text.size() && text[at] == '.')
      return Malformed(text, "a field name between two dots");
    if (name.empty()) continue;
    Step step;
    step.type = name == "*" ? Type::kAll : Type::kField;
    step.name = std::move(name);
    steps.push_back(std::move(step));
  }
  return Status::Ok();
}

Status JsonPath::ParseBracket(std::string_view inside, std::vector<Step>& steps) {
  Step step;
  if (inside == "*") {
    step.type = Type::kAll;
  } else if (inside.starts_with("?(") && inside.ends_with(')')) {
    step.type = Type::kFilter;
    RETURN_IF_ERROR(ParseFilter(Trim(inside.substr(2, inside.size() - 3)), step));
  } else if (const std::optional<int64_t> index = ParseInt(inside)) {
    step.type = Type::kIndex;
    step.index = *index;
  } else if (ParseSlice(inside, step)) {
    step.type = Type::kSlice;
  } else if (const std::optional<json::Value> name = ParseLiteral(inside);
             name && name->IsString()) {
    step.name = name->Str();
  } else {
    return Malformed(inside, "an index, a range, *, a quoted name or ?(...) in brackets");
  }
  steps.push_back(std::move(step));
  return Status::Ok();
}

// "1:3", "-1:", ":2".
bool JsonPath::ParseSlice(std::string_view text, Step& step) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view from = Trim(text.substr(0, colon)), to = Trim(text.substr(colon + 1));
  const std::optional<int64_t> start = from.empty() ? 0 : ParseInt(from);
  step.end = ParseInt(to);
  if (!start || (!to.empty() && !step.end)) return false;
  step.index = *start;
  return true;
}

Status JsonPath::ParseFilter(std::string_view text, Step& step) {
  constexpr std::array<std::string_view, 6> kComparisons = {"==", "!=", "<=", ">=", "<", ">"};
  if (!text.starts_with('@')) return Malformed(text, "a filter that starts with @");
  size_t end = text.size();
  for (std::string_view comparison : kComparisons) {
    const size_t found = text.find(comparison);
    if (found == std::string_view::npos) continue;
    const std::optional<json::Value> right =
        ParseLiteral(Trim(text.substr(found + comparison.size())));
    if (!right)
      return Malformed(text, "a quoted text, a number, true or false after the comparison");
    step.comparison = comparison;
    step.right = *right;
    end = found;
    break;
  }
  return ParseSteps(Trim(text.substr(1, end - 1)), step.left);
}

std::vector<json::Value> JsonPath::Find(const json::Value& root) const {
  return Walk(steps_, root);
}

std::vector<json::Value> JsonPath::Walk(const std::vector<Step>& steps, const json::Value& root) {
  std::vector<json::Value> found = {root};
  for (const Step& step : steps) {
    std::vector<json::Value> next;
    for (const json::Value& value : found) Take(step, value, next);
    found = std::move(next);
  }
  return found;
}

void JsonPath::Take(const Step& step, const json::Value& from, std::vector<json::Value>& out) {
  switch (step.type) {
    case Type::kField:
      if (const json::Value* value = from.Find(step.name)) out.push_back(*value);
      return;
    case Type::kIndex: {
      const int64_t size = static_cast<int64_t>(from.items().size());
      const int64_t index = step.index < 0 ? size + step.index : step.index;
      if (index >= 0 && index < size) out.push_back(from.items()[static_cast<size_t>(index)]);
      return;
    }
    case Type::kSlice: {
      const int64_t size = static_cast<int64_t>(from.items().size());
      const auto place = [size](int64_t index) {
        return std::clamp<int64_t>(index < 0 ? size + index : index, 0, size);
      };
      for (int64_t i = place(step.index); i < place(step.end.value_or(size)); ++i) {
        out.push_back(from.items()[static_cast<size_t>(i)]);
      }
      return;
    }
    case Type::kAll:
      for (const json::Value& item : from.items()) out.push_back(item);
      for (const auto& [name, value] : from.members()) out.push_back(value);
      return;
    case Type::kFilter:
      for (const json::Value& item : from.items()) {
        if (Holds(step, item)) out.push_back(item);
      }
      return;
  }
}

bool JsonPath::Holds(const Step& filter, const json::Value& item) {
  const std::vector<json::Value> found = Walk(filter.left, item);
  if (found.empty()) return false;
  if (filter.comparison.empty()) return true;
  const json::Value& left = found.front();
  if (filter.comparison == "==") return left == filter.right;
  if (filter.comparison == "!=") return !(left == filter.right);
  const bool text = left.IsString() && filter.right.IsString();
  const bool less =
      text ? left.AsString() < filter.right.AsString() : left.AsDouble() < filter.right.AsDouble();
  const bool equal = left == filter.right;
  if (filter.comparison == "<") return less;
  if (filter.comparison == "<=") return less || equal;
  if (filter.comparison == ">") return !less && !equal;
  return !less;
}

}  // namespace muster::apiserver
