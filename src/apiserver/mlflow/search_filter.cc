#include "apiserver/mlflow/search_filter.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/strings.h"

namespace muster::apiserver {
namespace {

using json::Value;

constexpr std::array<std::string_view, 8> kSigns = {"<=", ">=", "!=", "=", "<", ">", "(", ")"};

// "attributes.status" is "status", "tag.a" is "tags.a".
std::string Normal(std::string_view field) {
  struct Prefix {
    std::string_view written, meant;
  };
  for (const Prefix& prefix :
       {Prefix{"attributes.", ""}, Prefix{"attribute.", ""}, Prefix{"attr.", ""},
        Prefix{"run.", ""}, Prefix{"tag.", "tags."}, Prefix{"param.", "params."},
        Prefix{"parameters.", "params."}, Prefix{"metric.", "metrics."}}) {
    if (field.starts_with(prefix.written))
      return std::string(prefix.meant).append(field.substr(prefix.written.size()));
  }
  return std::string(field);
}

struct Token {
  enum class Kind : uint8_t { kEnd, kWord, kText, kSign };
  Kind kind = Kind::kEnd;
  std::string text;
};

// Words, 'texts', and signs. A part of a word may be quoted: tags.`my key`, params."my key".
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  Result<Token> Next() {
    rest_ = Trim(rest_);
    if (rest_.empty()) return Token{};
    if (rest_[0] == '\'' || rest_[0] == '"') {
      ASSIGN_OR_RETURN(std::string text, Quoted());
      return Token{Token::Kind::kText, std::move(text)};
    }
    if (rest_[0] == ',') {
      rest_.remove_prefix(1);
      return Token{Token::Kind::kSign, ","};
    }
    for (const std::string_view sign : kSigns) {
      if (!rest_.starts_with(sign)) continue;
      rest_.remove_prefix(sign.size());
      return Token{Token::Kind::kSign, std::string(sign)};
    }
    return Word();
  }

 private:
  Result<std::string> Quoted() {
    const size_t end = rest_.find(rest_[0], 1);
    if (end == std::string_view::npos)
      return Error(Reason::kInvalid, "the filter ends inside of quotes: {}", rest_);
    std::string text(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return text;
  }
  Result<Token> Word() {
    Token token{Token::Kind::kWord, ""};
    while (!rest_.empty() &&
           std::string_view(" \t\r\n,()<>=!'").find(rest_[0]) == std::string_view::npos) {
      if (rest_[0] == '`' || rest_[0] == '"') {
        ASSIGN_OR_RETURN(const std::string part, Quoted());
        token.text += part;
      } else {
        token.text += rest_[0];
        rest_.remove_prefix(1);
      }
    }
    if (token.text.empty())
      return Error(Reason::kInvalid, "the filter cannot be read from here: {}", rest_);
    return token;
  }

  std::string_view rest_;
};

std::optional<double> NumberOf(const Value& value) {
  if (value.IsNumber()) return value.AsDouble();
  const std::string_view text = value.AsString();
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() ||
      std::isnan(number))
    return std::nullopt;
  return number;
}

// Lives as long as `value`.
std::string_view TextOf(const Value& value) {
  return value.IsNumber() ? value.NumberToken() : value.AsString();
}

// SQL's LIKE: % is anything, _ one letter. Takes what it looks at from `steps`, and says no when
// there are none left. Time: pattern x text.
bool Like(std::string_view text, std::string_view pattern, size_t& steps) {
  size_t at = 0, in_pattern = 0, star = std::string_view::npos, resume = 0;
  while (at < text.size()) {
    if (steps == 0) return false;
    --steps;
    if (in_pattern < pattern.size() && pattern[in_pattern] == '%') {
      star = in_pattern++;
      resume = at;
    } else if (in_pattern < pattern.size() &&
               (pattern[in_pattern] == '_' || pattern[in_pattern] == text[at])) {
      ++in_pattern;
      ++at;
    } else if (star != std::string_view::npos) {
      in_pattern = star + 1;
      at = ++resume;
    } else {
      return false;
    }
  }
  while (in_pattern < pattern.size() && pattern[in_pattern] == '%') ++in_pattern;
  return in_pattern == pattern.size();
}

// -1, 0, 1: as numbers if the object has one, else as texts.
int Compare(const Value& has, const Value& wanted) {
  if (has.IsNumber()) {
    const std::optional<double> a = NumberOf(has), b = NumberOf(wanted);
    if (a && b) return *a < *b ? -1 : (*a > *b ? 1 : 0);
  }
  return std::clamp(TextOf(has).compare(TextOf(wanted)), -1, 1);
}

bool TermHolds(const FilterTerm& term, const Value& has, size_t& like_steps) {
  if (has.IsNull()) return false;
  const Value& wanted = term.values[0];
  if (term.comparison == "LIKE") return Like(TextOf(has), TextOf(wanted), like_steps);
  if (term.comparison == "ILIKE")
    return Like(ToLower(TextOf(has)), ToLower(TextOf(wanted)), like_steps);
  if (term.comparison == "IN") {
    return std::ranges::any_of(term.values,
                               [&](const Value& each) { return Compare(has, each) == 0; });
  }
  const int compared = Compare(has, wanted);
  if (term.comparison == "=") return compared == 0;
  if (term.comparison == "!=") return compared != 0;
  if (term.comparison == "<") return compared < 0;
  if (term.comparison == "<=") return compared <= 0;
  return term.comparison == ">" ? compared > 0 : compared >= 0;
}

Result<Value> ReadValue(const Token& token) {
  if (token.kind == Token::Kind::kText) return Value(token.text);
  if (token.kind == Token::Kind::kWord && NumberOf(Value(token.text))) return Value(token.text);
  return Error(Reason::kInvalid, "the filter needs a number or a text in quotes, not {:?}",
               token.text);
}

// 'a', 'b')
Status ReadValues(Scanner& scanner, FilterTerm& term) {
  ASSIGN_OR_RETURN(const Token open, scanner.Next());
  if (open.text != "(") return Error(Reason::kInvalid, "IN needs a list: ('a', 'b')");
  while (true) {
    ASSIGN_OR_RETURN(const Token token, scanner.Next());
    ASSIGN_OR_RETURN(Value value, ReadValue(token));
    term.values.push_back(std::move(value));
    ASSIGN_OR_RETURN(const Token next, scanner.Next());
    if (next.kind == Token::Kind::kSign && next.text == ")") return Status::Ok();
    if (next.kind != Token::Kind::kSign || next.text != ",")
      return Error(Reason::kInvalid, "the list of IN needs ',' or ')', not {:?}", next.text);
  }
}

std::string Upper(std::string text) {
  for (char& each : text)
    if (each >= 'a' && each <= 'z') each = static_cast<char>(each - 'a' + 'A');
  return text;
}

Result<FilterTerm> ReadTerm(Scanner& scanner) {
  ASSIGN_OR_RETURN(const Token field, scanner.Next());
  if (field.kind != Token::Kind::kWord)
    return Error(Reason::kInvalid, "the filter needs a field such as name or tags.team, not {:?}",
                 field.text);
  ASSIGN_OR_RETURN(const Token comparison, scanner.Next());
  FilterTerm term{Normal(field.text), Upper(comparison.text), {}};
  const bool word = term.comparison == "LIKE" || term.comparison == "ILIKE";
  if (comparison.kind == Token::Kind::kWord && term.comparison == "IN") {
    RETURN_IF_ERROR(ReadValues(scanner, term));
    return term;
  }
  const bool sign = comparison.kind == Token::Kind::kSign &&
                    std::string_view("(),").find(comparison.text) == std::string_view::npos;
  if (!sign && !(comparison.kind == Token::Kind::kWord && word))
    return Error(Reason::kInvalid, "{:?} is no comparison: =, !=, <, <=, >, >=, LIKE, ILIKE or IN",
                 comparison.text);
  ASSIGN_OR_RETURN(const Token token, scanner.Next());
  ASSIGN_OR_RETURN(Value value, ReadValue(token));
  term.values.push_back(std::move(value));
  return term;
}

Status CheckField(const std::string& field, const FieldLookup& lookup) {
  if (lookup(Value(), field)) return Status::Ok();
  return Error(Reason::kInvalid,
               "Invalid attribute key '{}' specified: metrics are written metrics.{}, parameters "
               "params.{}, tags tags.{}, where there are such",
               field, field, field, field);
}

struct OrderTerm {
  std::string field;
  bool descending = false;
};

// "metrics.loss DESC".
Result<OrderTerm> ReadOrder(std::string_view text) {
  if (text.size() > kMaxFilterBytes)
    return Error(Reason::kInvalid, "a field of order_by has at most {} bytes", kMaxFilterBytes);
  Scanner scanner(text);
  ASSIGN_OR_RETURN(const Token word, scanner.Next());
  ASSIGN_OR_RETURN(const Token direction, scanner.Next());
  ASSIGN_OR_RETURN(const Token end, scanner.Next());
  const std::string way = Upper(direction.text);
  if (word.kind != Token::Kind::kWord || end.kind != Token::Kind::kEnd ||
      (!way.empty() && way != "ASC" && way != "DESC"))
    return Error(Reason::kInvalid, "order_by {:?}: expected a field and ASC or DESC", text);
  return OrderTerm{Normal(word.text), way == "DESC"};
}

}  // namespace

Result<SearchFilter> SearchFilter::Parse(std::string_view text) {
  SearchFilter filter;
  if (text.size() > kMaxFilterBytes)
    return Error(Reason::kInvalid, "a filter has at most {} bytes", kMaxFilterBytes);
  if (Trim(text).empty()) return filter;
  Scanner scanner(text);
  while (true) {
    ASSIGN_OR_RETURN(FilterTerm term, ReadTerm(scanner));
    filter.terms_.push_back(std::move(term));
    if (filter.terms_.size() > kMaxFilterTerms)
      return Error(Reason::kInvalid, "a filter has at most {} comparisons", kMaxFilterTerms);
    ASSIGN_OR_RETURN(const Token next, scanner.Next());
    if (next.kind == Token::Kind::kEnd) return filter;
    if (next.kind != Token::Kind::kWord || Upper(next.text) != "AND")
      return Error(Reason::kInvalid, "the filter needs AND between comparisons, not {:?}",
                   next.text);
  }
}

Result<json::Array> SearchFilter::Apply(json::Array objects, const FieldLookup& lookup) const {
  for (const FilterTerm& term : terms_) RETURN_IF_ERROR(CheckField(term.field, lookup));
  size_t like_steps = kMaxLikeSteps;
  std::erase_if(objects, [&](const Value& object) {
    return !std::ranges::all_of(terms_, [&](const FilterTerm& term) {
      return TermHolds(term, lookup(object, term.field).value_or(Value()), like_steps);
    });
  });
  if (like_steps == 0) {
    return Error(Reason::kInvalid,
                 "LIKE takes too long here: search with fewer % or for less, by name");
  }
  return objects;
}

std::string SearchFilter::Equal(std::string_view field) const {
  for (const FilterTerm& term : terms_)
    if (term.field == field && term.comparison == "=") return std::string(TextOf(term.values[0]));
  return "";
}

Result<json::Array> Ordered(json::Array objects, const Value& order_by, const FieldLookup& lookup) {
  if (order_by.size() > kMaxOrderTerms)
    return Error(Reason::kInvalid, "order_by has at most {} fields", kMaxOrderTerms);
  std::vector<OrderTerm> terms;
  for (const Value& each : order_by.items()) {
    ASSIGN_OR_RETURN(OrderTerm term, ReadOrder(each.AsString()));
    RETURN_IF_ERROR(CheckField(term.field, lookup));
    terms.push_back(std::move(term));
  }
  if (terms.empty()) return objects;
  struct Keyed {
    std::vector<Value> keys;
    Value object;
  };
  std::vector<Keyed> keyed;
  for (Value& object : objects) {
    std::vector<Value> keys;
    for (const OrderTerm& term : terms)
      keys.push_back(lookup(object, term.field).value_or(Value()));
    keyed.push_back({std::move(keys), std::move(object)});
  }
  std::ranges::stable_sort(keyed, [&](const Keyed& a, const Keyed& b) {
    for (size_t i = 0; i < terms.size(); ++i) {
      const Value &left = a.keys[i], &right = b.keys[i];
      if (left.IsNull() != right.IsNull()) return right.IsNull();
      const int compared = left.IsNull() ? 0 : Compare(left, right);
      if (compared != 0) return terms[i].descending ? compared > 0 : compared < 0;
    }
    return false;
  });
  for (size_t k = 0; k < keyed.size(); ++k) objects[k] = std::move(keyed[k].object);
  return objects;
}

}  // namespace muster::apiserver
