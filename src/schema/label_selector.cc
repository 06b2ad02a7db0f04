#include "schema/label_selector.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "base/strings.h"
#include "schema/names.h"

namespace muster::schema {
namespace {

constexpr std::string_view kSymbols = "=!(),<>";

struct Token {
  std::string_view text;  // "" at the end
  bool identifier = false;
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Token Peek() const { return Scan().first; }
  Token Take() {
    const auto [token, end] = Scan();
    at_ = end;
    return token;
  }

 private:
  std::pair<Token, size_t> Scan() const {
    size_t i = at_;
    while (i < text_.size() && std::string_view(" \t\r\n").find(text_[i]) != std::string_view::npos)
      ++i;
    if (i == text_.size()) return {{}, i};
    if (kSymbols.find(text_[i]) == std::string_view::npos) {
      const size_t end = std::min(text_.find_first_of("=!(),<> \t\r\n", i), text_.size());
      return {{text_.substr(i, end - i), true}, end};
    }
    const bool two = text_.substr(i, 2) == "==" || text_.substr(i, 2) == "!=";
    const size_t size = two ? 2 : 1;
    return {{text_.substr(i, size), false}, i + size};
  }

  std::string_view text_;
  size_t at_ = 0;
};

ErrorStatus Found(std::string_view found, std::string_view expected) {
  return Error(Reason::kBadRequest, "found '{}', expected: {}", found, expected);
}

ErrorStatus InvalidKey(std::string_view field, std::string_view value, const Problems& problems) {
  return Error(Reason::kBadRequest, "{}: Invalid value: \"{}\": {}", field, value,
               Join(problems, "; "));
}

Result<LabelRequirement> Make(std::string_view key, LabelOperator op,
                              std::vector<std::string> values) {
  Problems problems;
  CheckQualifiedName(key, problems);
  if (!problems.empty()) return InvalidKey("key", key, problems);
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  const bool set = op == LabelOperator::kIn || op == LabelOperator::kNotIn;
  const bool exists = op == LabelOperator::kExists || op == LabelOperator::kDoesNotExist;
  if (set && values.empty()) {
    return Error(
        Reason::kBadRequest,
        "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty");
  }
  if (exists && !values.empty()) {
    return Error(
        Reason::kBadRequest,
        "values: Invalid value: [{}]: values set must be empty for exists and does not exist",
        Join(values, " "));
  }
  if (!set && !exists && (values.size() != 1 || !ParseInt(values[0]))) {
    return Error(
        Reason::kBadRequest,
        "values[0]: Invalid value: \"{}\": for 'Gt', 'Lt' operators, the value must be an integer",
        values.empty() ? "" : values[0]);
  }
  for (size_t i = 0; i < values.size(); ++i) {
    CheckLabelValue(values[i], problems);
    if (!problems.empty())
      return InvalidKey(fmt::format("values[{}][{}]", i, key), values[i], problems);
  }
  return LabelRequirement{std::string(key), op, std::move(values)};
}

// The values after `in` or `notin`, with their parentheses.
Result<std::vector<std::string>> ParenthesizedValues(Lexer& lexer) {
  std::vector<std::string> values;
  Token token = lexer.Take();
  if (token.text != "(") return Error(Reason::kBadRequest, "found '{}' expected: '('", token.text);
  if (lexer.Peek().text == ")" && !lexer.Peek().identifier) {
    lexer.Take();
    return values;
  }
  if (!lexer.Peek().identifier && lexer.Peek().text != ",")
    return Found(lexer.Peek().text, "',', ')' or identifier");
  while (true) {
    token = lexer.Peek();
    if (token.identifier) {
      values.emplace_back(lexer.Take().text);
    } else if (token.text == "," || token.text == ")") {
      values.emplace_back();  // nothing between two commas means ""
    } else {
      return Found(token.text, "',', or identifier");
    }
    token = lexer.Take();
    if (token.identifier || (token.text != "," && token.text != ")"))
      return Found(token.text, "',' or ')'");
    if (token.text == ")") return values;
  }
}

Result<LabelRequirement> ParseRequirement(Lexer& lexer) {
  Token token = lexer.Take();
  const bool absent = !token.identifier && token.text == "!";
  if (absent) token = lexer.Take();
  if (!token.identifier) return Found(token.text, "identifier");
  const std::string_view key = token.text;
  Problems problems;
  CheckQualifiedName(key, problems);
  if (!problems.empty()) return InvalidKey("key", key, problems);
  const Token next = lexer.Peek();
  if (next.text.empty() || (!next.identifier && next.text == ",")) {
    return Make(key, absent ? LabelOperator::kDoesNotExist : LabelOperator::kExists, {});
  }
  if (absent) return Make(key, LabelOperator::kDoesNotExist, {});
  const std::string_view op = lexer.Take().text;
  if (op == "in" || op == "notin") {
    ASSIGN_OR_RETURN(std::vector<std::string> values, ParenthesizedValues(lexer));
    return Make(key, op == "in" ? LabelOperator::kIn : LabelOperator::kNotIn, std::move(values));
  }
  LabelOperator kind = LabelOperator::kIn;
  if (op == "!=") {
    kind = LabelOperator::kNotIn;
  } else if (op == ">") {
    kind = LabelOperator::kGreaterThan;
  } else if (op == "<") {
    kind = LabelOperator::kLessThan;
  } else if (op != "=" && op != "==") {
    return Found(op, "in, notin, =, ==, !=, gt, lt");
  }
  const Token value = lexer.Peek();
  if (value.text.empty() || (!value.identifier && value.text == ",")) return Make(key, kind, {""});
  if (!value.identifier) return Found(value.text, "identifier");
  return Make(key, kind, {std::string(lexer.Take().text)});
}

}  // namespace

bool LabelRequirement::Matches(std::optional<std::string_view> value) const {
  const auto listed = [&] { return std::binary_search(values.begin(), values.end(), *value); };
  switch (op) {
    case LabelOperator::kIn:
      return value && listed();
    case LabelOperator::kNotIn:
      return !value || !listed();
    case LabelOperator::kExists:
      return value.has_value();
    case LabelOperator::kDoesNotExist:
      return !value.has_value();
    case LabelOperator::kGreaterThan:
    case LabelOperator::kLessThan:
      break;
  }
  const std::optional<int64_t> number = value ? ParseInt(*value) : std::nullopt;
  const std::optional<int64_t> bound = ParseInt(values[0]);
  if (!number || !bound) return false;
  return op == LabelOperator::kGreaterThan ? *number > *bound : *number < *bound;
}

LabelSelector LabelSelector::Nothing() {
  LabelSelector selector;
  selector.nothing_ = true;
  return selector;
}

Result<LabelSelector> LabelSelector::Parse(std::string_view text) {
  Lexer lexer(text);
  std::vector<LabelRequirement> requirements;
  if (lexer.Peek().text.empty()) return LabelSelector();
  if (!lexer.Peek().identifier && lexer.Peek().text != "!") {
    return Found(lexer.Peek().text, "!, identifier, or 'end of string'");
  }
  while (true) {
    Result<LabelRequirement> requirement = ParseRequirement(lexer);
    if (!requirement) return Error(requirement.error().WithPrefix("unable to parse requirement: "));
    requirements.push_back(std::move(*requirement));
    if (requirements.size() > kMaxSelectorRequirements) {
      return Error(Reason::kBadRequest, "a label selector may have at most {} requirements",
                   kMaxSelectorRequirements);
    }
    const Token token = lexer.Take();
    if (token.text.empty()) return LabelSelector(std::move(requirements));
    if (token.identifier || token.text != ",") return Found(token.text, "',' or 'end of string'");
    if (!lexer.Peek().identifier && lexer.Peek().text != "!")
      return Found(lexer.Peek().text, "identifier after ','");
  }
}

Result<LabelSelector> LabelSelector::FromJson(const json::Value& selector) {
  if (selector.IsNull()) return Nothing();
  constexpr std::array<std::pair<std::string_view, LabelOperator>, 4> kOperators = {
      {{"In", LabelOperator::kIn},
       {"NotIn", LabelOperator::kNotIn},
       {"Exists", LabelOperator::kExists},
       {"DoesNotExist", LabelOperator::kDoesNotExist}}};
  std::vector<LabelRequirement> requirements;
  for (const auto& [key, value] : selector["matchLabels"].members()) {
    ASSIGN_OR_RETURN(LabelRequirement requirement, Make(key, LabelOperator::kIn, {value.Str()}));
    requirements.push_back(std::move(requirement));
  }
  for (const json::Value& expression : selector["matchExpressions"].items()) {
    const std::string_view op = expression["operator"].AsString();
    const auto found = std::find_if(kOperators.begin(), kOperators.end(),
                                    [&](const auto& row) { return row.first == op; });
    if (found == kOperators.end())
      return Error(Reason::kBadRequest, "\"{}\" is not a valid label selector operator", op);
    ASSIGN_OR_RETURN(LabelRequirement requirement, Make(expression["key"].AsString(), found->second,
                                                        json::ToStrings(expression["values"])));
    requirements.push_back(std::move(requirement));
  }
  if (requirements.size() > kMaxSelectorRequirements) {
    return Error(Reason::kBadRequest, "a label selector may have at most {} requirements",
                 kMaxSelectorRequirements);
  }
  // Whatever order the members were written in, the text is the same.
  std::ranges::sort(requirements, {}, [](const LabelRequirement& requirement) {
    return std::tie(requirement.key, requirement.op, requirement.values);
  });
  return LabelSelector(std::move(requirements));
}

LabelSelector LabelSelector::FromMap(const json::Value& labels) {
  if (labels.empty()) return Nothing();
  std::vector<LabelRequirement> requirements;
  for (const auto& [key, value] : labels.members())
    requirements.push_back({key, LabelOperator::kIn, {value.Str()}});
  return LabelSelector(std::move(requirements));
}

bool LabelSelector::Matches(const json::Value& labels) const {
  return MatchesBy([&](std::string_view key) -> std::optional<std::string_view> {
    const json::Value* value = labels.Find(key);
    if (value == nullptr) return std::nullopt;
    return value->AsString();
  });
}

std::string LabelSelector::ToString() const {
  std::vector<std::string> parts;
  for (const LabelRequirement& requirement : requirements_) {
    const std::string& key = requirement.key;
    const std::string values = Join(requirement.values, ",");
    const bool one = requirement.values.size() == 1;
    switch (requirement.op) {
      case LabelOperator::kIn:
        parts.push_back(one ? fmt::format("{}={}", key, values)
                            : fmt::format("{} in ({})", key, values));
        break;
      case LabelOperator::kNotIn:
        parts.push_back(one ? fmt::format("{}!={}", key, values)
                            : fmt::format("{} notin ({})", key, values));
        break;
      case LabelOperator::kExists:
        parts.push_back(key);
        break;
      case LabelOperator::kDoesNotExist:
        parts.push_back("!" + key);
        break;
      case LabelOperator::kGreaterThan:
        parts.push_back(fmt::format("{}>{}", key, values));
        break;
      case LabelOperator::kLessThan:
        parts.push_back(fmt::format("{}<{}", key, values));
        break;
    }
  }
  return Join(parts, ",");
}

}  // namespace muster::schema
