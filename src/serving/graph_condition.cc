#include "serving/graph_condition.h"

#include <array>
#include <optional>
#include <string>

#include "base/strings.h"
#include "json/parse.h"

namespace muster::serving {
namespace {

using json::Value;

constexpr std::array<std::string_view, 6> kOperators = {"==", "!=", "<=", ">=", "<", ">"};
constexpr std::string_view kThis = "@this";
constexpr std::string_view kListOfThis = "[@this]";

auto Refused(std::string_view condition) {
  return Error(Reason::kInvalid,
               "condition {:?}: only paths such as a.b.0 and queries such as "
               "[@this].#(a==\"x\") are understood",
               condition);
}

// The end of the component that begins at 0: the next dot outside of brackets and quotes.
size_t EndOfComponent(std::string_view path) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < path.size(); ++i) {
    const char c = path[i];
    if (quoted && c == '\\') {
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == '(' || c == '[')) {
      ++depth;
    } else if (!quoted && (c == ')' || c == ']')) {
      --depth;
    } else if (!quoted && depth == 0 && c == '.') {
      return i;
    }
  }
  return path.size();
}

// Where an operator begins; npos if there is none.
size_t FindOperator(std::string_view query, std::string_view& operation) {
  for (size_t i = 0; i < query.size() && query[i] != '"'; ++i) {
    for (const std::string_view one : kOperators) {
      if (query.substr(i).starts_with(one)) {
        operation = one;
        return i;
      }
    }
  }
  return query.npos;
}

bool IsQuery(std::string_view component) {
  return component.starts_with("#(") && component.ends_with(")");
}

std::string_view QueryOf(std::string_view component) {
  return component.substr(2, component.size() - 3);
}

bool IsPlainName(std::string_view component) {
  return !component.empty() && component.find_first_of("#@[](){}|*?!\\\"") == component.npos;
}

// Takes the next component from `path`.
std::string_view NextComponent(std::string_view& path) {
  const size_t end = EndOfComponent(path);
  const std::string_view component = path.substr(0, end);
  path = end == path.size() ? "" : path.substr(end + 1);
  return component;
}

Status CheckPath(std::string_view condition, std::string_view path) {
  while (!path.empty()) {
    const std::string_view component = NextComponent(path);
    if (component == kThis || component == kListOfThis || IsPlainName(component)) continue;
    if (!IsQuery(component)) return Refused(condition);
    const std::string_view query = QueryOf(component);
    std::string_view operation;
    const size_t at = FindOperator(query, operation);
    if (at != query.npos && !json::Parse(Trim(query.substr(at + operation.size()))))
      return Refused(condition);
    RETURN_IF_ERROR(CheckPath(condition, Trim(query.substr(0, at))));
  }
  return Status::Ok();
}

Status CheckSize(std::string_view condition) {
  if (condition.size() <= kMaxConditionBytes) return Status::Ok();
  return Error(Reason::kInvalid, "a condition of {} bytes, at most {}", condition.size(),
               kMaxConditionBytes);
}

bool Compare(const Value& a, std::string_view operation, const Value& b) {
  if (operation == "==") return a == b;
  if (operation == "!=") return !(a == b);
  std::optional<int> order;
  if (a.IsNumber() && b.IsNumber()) {
    order = a.AsDouble() < b.AsDouble() ? -1 : (a.AsDouble() > b.AsDouble() ? 1 : 0);
  } else if (a.IsString() && b.IsString()) {
    order = a.AsString().compare(b.AsString());
  }
  if (!order) return false;
  if (operation == "<") return *order < 0;
  if (operation == "<=") return *order <= 0;
  if (operation == ">") return *order > 0;
  return *order >= 0;
}

Result<std::optional<Value>> Find(std::string_view condition, std::string_view path, Value value);

Result<std::optional<Value>> FirstThatFits(std::string_view condition, std::string_view query,
                                           const Value& list) {
  std::string_view operation;
  const size_t at = FindOperator(query, operation);
  std::optional<Value> wanted;
  if (at != query.npos) {
    auto parsed = json::Parse(Trim(query.substr(at + operation.size())));
    if (!parsed) return Refused(condition);
    wanted = *std::move(parsed);
  }
  for (const Value& item : list.items()) {
    ASSIGN_OR_RETURN(const auto found, Find(condition, Trim(query.substr(0, at)), item));
    if (found && (!wanted || Compare(*found, operation, *wanted)))
      return std::optional<Value>(item);
  }
  return std::optional<Value>();
}

// nullopt: nothing is there.
Result<std::optional<Value>> Find(std::string_view condition, std::string_view path, Value value) {
  while (!path.empty()) {
    const std::string_view component = NextComponent(path);
    if (component == kThis) continue;
    if (component == kListOfThis) {
      value = json::List({value});
    } else if (IsQuery(component)) {
      ASSIGN_OR_RETURN(auto found, FirstThatFits(condition, QueryOf(component), value));
      if (!found) return std::optional<Value>();
      value = *std::move(found);
    } else if (!IsPlainName(component)) {
      return Refused(condition);
    } else if (value.IsArray()) {
      const auto index = ParseInt(component);
      if (!index || *index < 0 || static_cast<size_t>(*index) >= value.size())
        return std::optional<Value>();
      value = Value(value.At(static_cast<size_t>(*index)));
    } else {
      const Value* member = value.Find(component);
      if (member == nullptr) return std::optional<Value>();
      value = Value(*member);
    }
  }
  return std::optional<Value>(std::move(value));
}

}  // namespace

Status CheckGraphCondition(std::string_view condition) {
  RETURN_IF_ERROR(CheckSize(condition));
  return CheckPath(condition, Trim(condition));
}

Result<bool> GraphConditionHolds(std::string_view condition, const Value& value) {
  RETURN_IF_ERROR(CheckSize(condition));
  ASSIGN_OR_RETURN(const auto found, Find(condition, Trim(condition), value));
  return found.has_value();
}

}  // namespace muster::serving
