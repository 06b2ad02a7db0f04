#include "apiserver/mlflow/argument_types.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include <fmt/core.h>

#include "base/strings.h"

namespace muster::apiserver {
namespace {

using json::Value;

enum class Type : uint8_t { kText, kInteger, kNumber, kBool, kTexts, kPairs, kMetrics };

struct Argument {
  std::string_view name;
  Type type;
};

constexpr auto kArguments = std::to_array<Argument>({
    {"alias", Type::kText},
    {"archive_existing_versions", Type::kBool},
    {"artifact_location", Type::kText},
    {"description", Type::kText},
    {"end_time", Type::kInteger},
    {"experiment_id", Type::kText},
    {"experiment_ids", Type::kTexts},
    {"experiment_name", Type::kText},
    {"filter", Type::kText},
    {"key", Type::kText},
    {"max_results", Type::kInteger},
    {"metrics", Type::kMetrics},
    {"model_id", Type::kText},
    {"name", Type::kText},
    {"order_by", Type::kTexts},
    {"page_token", Type::kText},
    {"params", Type::kPairs},
    {"run_id", Type::kText},
    {"run_link", Type::kText},
    {"run_name", Type::kText},
    {"run_uuid", Type::kText},
    {"run_view_type", Type::kText},
    {"source", Type::kText},
    {"stage", Type::kText},
    {"stages", Type::kTexts},
    {"start_time", Type::kInteger},
    {"status", Type::kText},
    {"step", Type::kInteger},
    {"tags", Type::kPairs},
    {"timestamp", Type::kInteger},
    {"user_id", Type::kText},
    {"value", Type::kText},
    {"version", Type::kInteger},
    {"view_type", Type::kText},
});

constexpr auto kMetric = std::to_array<Argument>({{"key", Type::kText},
                                                  {"value", Type::kNumber},
                                                  {"step", Type::kInteger},
                                                  {"timestamp", Type::kInteger}});
constexpr auto kPair = std::to_array<Argument>({{"key", Type::kText}, {"value", Type::kText}});

Status Check(const std::string& name, Type type, const Value& value);

Status Wrong(const std::string& name, std::string_view wanted) {
  return Error(Reason::kInvalid, "Invalid value for parameter '{}' supplied: it must be {}", name,
               wanted);
}

// A list of what `check` takes.
template <typename Checker>
Status CheckList(const std::string& name, std::string_view wanted, const Value& list,
                 Checker check) {
  if (!list.IsArray()) return Wrong(name, wanted);
  for (size_t i = 0; i < list.size(); ++i)
    RETURN_IF_ERROR(check(fmt::format("{}[{}]", name, i), list.At(i)));
  return Status::Ok();
}

template <size_t kSize>
Status CheckObjects(const std::string& name, const Value& list,
                    const std::array<Argument, kSize>& members) {
  return CheckList(name, "a list of objects with a key and a value", list,
                   [&](const std::string& place, const Value& each) -> Status {
                     if (!each.IsObject()) return Wrong(place, "an object with a key and a value");
                     for (const Argument& member : members) {
                       RETURN_IF_ERROR(Check(fmt::format("{}.{}", place, member.name), member.type,
                                             each[member.name]));
                     }
                     return Status::Ok();
                   });
}

// 64 bits come as their digits, too.
bool IsInteger(const Value& value) {
  return value.IsString() ? ParseInt(value.AsString()).has_value() : value.Int().has_value();
}

Status Check(const std::string& name, Type type, const Value& value) {
  if (value.IsNull()) return Status::Ok();
  switch (type) {
    case Type::kText:
      return value.IsString() ? Status::Ok() : Wrong(name, "a string");
    case Type::kInteger:
      return IsInteger(value) ? Status::Ok() : Wrong(name, "an integer");
    case Type::kNumber:
      return value.IsNumber() || value.IsString() ? Status::Ok() : Wrong(name, "a number");
    case Type::kBool:
      return value.IsBool() ? Status::Ok() : Wrong(name, "true or false");
    case Type::kTexts:
      return CheckList(name, "a list of strings", value,
                       [](const std::string& place, const Value& each) {
                         return each.IsString() ? Status::Ok() : Wrong(place, "a string");
                       });
    case Type::kPairs:
      return CheckObjects(name, value, kPair);
    case Type::kMetrics:
      return CheckObjects(name, value, kMetric);
  }
  return Status::Ok();
}

}  // namespace

Status CheckArgumentTypes(std::string_view path, const Value& arguments) {
  for (const auto& [name, value] : arguments.members()) {
    const auto known = std::ranges::find(kArguments, std::string_view(name), &Argument::name);
    if (known == kArguments.end()) continue;
    const bool of_metric = path == "runs/log-metric" && known->name == "value";
    RETURN_IF_ERROR(Check(std::string(name), of_metric ? Type::kNumber : known->type, value));
  }
  return Status::Ok();
}

}  // namespace muster::apiserver
