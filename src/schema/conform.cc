#include "schema/conform.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/strings.h"
#include "base/time.h"
#include "schema/defaulting.h"
#include "schema/path.h"
#include "schema/quantity_syntax.h"
#include "schema/type_names.h"

namespace muster::schema {
namespace {

constexpr std::string_view kBase64Alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kObjectMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

// What Go's decoder calls it.
std::string_view Found(const json::Value& value) {
  return value.IsBool() ? "bool" : JsonKindName(value.kind());
}

// "io.k8s.api.core.v1.PodSpec" -> "PodSpec" or, with its package, "v1.PodSpec".
std::string_view LastParts(std::string_view name, int parts) {
  size_t start = name.size();
  for (; parts > 0 && start != std::string_view::npos; --parts) start = name.rfind('.', start - 1);
  return start == std::string_view::npos ? name : name.substr(start + 1);
}

// How Go names the type that a schema stands for.
std::string GoType(const Schema& schema) {
  switch (schema.type) {
    case Type::kArray:
      return "[]" + (schema.items == nullptr ? "interface {}" : GoType(*schema.items));
    case Type::kMap:
      return "map[string]" + (schema.items == nullptr ? "interface {}" : GoType(*schema.items));
    case Type::kString:
      return "string";
    case Type::kBytes:
      return "[]uint8";
    case Type::kInteger:
      return schema.format.empty() ? "int64" : schema.format;
    case Type::kNumber:
      return "float64";
    case Type::kBoolean:
      return "bool";
    case Type::kIntOrString:
      return "intstr.IntOrString";
    case Type::kQuantity:
      return "resource.Quantity";
    case Type::kTime:
      return "v1.Time";
    case Type::kMicroTime:
      return "v1.MicroTime";
    case Type::kAny:
    case Type::kObject:
      break;
  }
  return std::string(schema.name.empty() ? "object" : LastParts(schema.name, 2));
}

bool IsEmpty(const Schema& schema, const json::Value& value) {
  switch (schema.type) {
    case Type::kString:
    case Type::kBytes:
      return value.AsString().empty();
    case Type::kBoolean:
      return !value.AsBool();
    case Type::kInteger:
    case Type::kNumber:
      return value.AsDouble() == 0;
    case Type::kArray:
    case Type::kMap:
      return value.empty();
    default:
      return false;  // Go writes structs even when they are empty
  }
}

// Where upstream's defaults tell an empty list from none, what was sent is kept for ours to see.
bool IsToldFromNone(std::string_view type, std::string_view field) {
  return type == "io.k8s.api.autoscaling.v2.HPAScalingRules" && field == "policies";
}

class Walk {
 public:
  Walk(const ConformOptions& options, std::vector<std::string>* unknown)
      : options_(options), unknown_(unknown) {}

  const Status& status() const { return status_; }

  // Gives the value that stands for `value`, or nullopt when it is `value` itself. After an error:
  // any.
  std::optional<json::Value> Any(const Schema& schema, const json::Value& value, const Path& path,
                                 std::string_view owner) {
    switch (schema.type) {
      case Type::kAny:
        return std::nullopt;
      case Type::kObject:
        return Object(schema, value, path, owner);
      case Type::kMap:
        return Map(schema, value, path, owner);
      case Type::kArray:
        return Array(schema, value, path, owner);
      default:
        return options_.check_types ? Scalar(schema, value, path, owner) : std::nullopt;
    }
  }

 private:
  std::nullopt_t WrongType(const Schema& schema, const json::Value& value, const Path& path,
                           std::string_view owner) {
    if (!status_.ok() || !options_.check_types) return std::nullopt;
    std::string found(Found(value));
    if (value.IsNumber() && schema.type == Type::kInteger)
      found += fmt::format(" {}", value.NumberToken());
    const std::string field = path.FieldNames();
    const std::string place =
        field.empty() ? "Go value" : fmt::format("Go struct field {}.{}", owner, field);
    status_ = Error(Reason::kBadRequest, "json: cannot unmarshal {} into {} of type {}", found,
                    place, GoType(schema));
    return std::nullopt;
  }

  void Unknown(const Path& path) {
    if (unknown_ != nullptr && unknown_->size() < kMaxReportedFields)
      unknown_->push_back(path.ToString());
  }

  std::optional<json::Value> Object(const Schema& schema, const json::Value& value,
                                    const Path& path, std::string_view owner) {
    if (!value.IsObject()) return WrongType(schema, value, path, owner);
    if (schema.name == kObjectMeta && !options_.check_types) {
      // Metadata is the Go type also where the rest of the object is not.
      const ConformOptions outer = options_;
      options_ = ConformOptions();
      std::optional<json::Value> result = Members(schema, value, path);
      options_ = outer;
      return result;
    }
    return Members(schema, value, path);
  }

  std::optional<json::Value> Members(const Schema& schema, const json::Value& value,
                                     const Path& path) {
    const std::string_view name = LastParts(schema.name, 1);
    const json::Object& members = value.members();
    json::Object changed;
    bool differs = false;
    const auto diverge = [&](size_t position) {
      if (differs) return;
      differs = true;
      changed.reserve(members.size());
      changed.assign(members.begin(), members.begin() + static_cast<ptrdiff_t>(position));
    };
    for (size_t i = 0; i < members.size(); ++i) {
      const auto& [key, member] = members[i];
      const Field* field = schema.Find(key);
      const Path place = path.Child(key);
      if (field == nullptr) {
        if (!schema.preserve_unknown) {
          Unknown(place);
          diverge(i);
        } else if (differs) {
          changed.push_back(members[i]);
        }
        continue;
      }
      if (member.IsNull() && (options_.drop_empty || !field->schema->nullable)) {
        diverge(i);
        continue;
      }
      std::optional<json::Value> now;
      if (!member.IsNull()) now = Any(*field->schema, member, place, name);
      if (!status_.ok()) return std::nullopt;
      const json::Value& kept = now ? *now : member;
      if (options_.drop_empty && field->omit_empty && !field->pointer &&
          IsEmpty(*field->schema, kept) && !IsToldFromNone(schema.name, key)) {
        diverge(i);
        continue;
      }
      if (now) diverge(i);
      if (differs) changed.emplace_back(key, kept);
    }
    if (!differs) return std::nullopt;
    return json::Value(std::move(changed));
  }

  std::optional<json::Value> Map(const Schema& schema, const json::Value& value, const Path& path,
                                 std::string_view owner) {
    if (!value.IsObject()) return WrongType(schema, value, path, owner);
    if (schema.items == nullptr) return std::nullopt;
    json::Value result = value;
    bool differs = false;
    for (const auto& [key, member] : value.members()) {
      std::optional<json::Value> now = Element(schema, member, path.Child(key), path, owner);
      if (!status_.ok()) return std::nullopt;
      if (!now) continue;
      differs = true;
      result = std::move(result).Set(key, std::move(*now));
    }
    if (!differs) return std::nullopt;
    return result;
  }

  std::optional<json::Value> Array(const Schema& schema, const json::Value& value, const Path& path,
                                   std::string_view owner) {
    if (!value.IsArray()) return WrongType(schema, value, path, owner);
    if (schema.items == nullptr) return std::nullopt;
    json::Array items;
    bool differs = false;
    for (size_t i = 0; i < value.size(); ++i) {
      const Path place = path.Index(i);
      std::optional<json::Value> now = Element(schema, value.At(i), place, place, owner);
      if (!status_.ok()) return std::nullopt;
      if (now && !differs) {
        differs = true;
        items = value.items();
      }
      if (now) items[i] = std::move(*now);
    }
    if (!differs) return std::nullopt;
    return json::Value(std::move(items));
  }

  // An item or a map's value. Go decodes null to the zero of its type.
  std::optional<json::Value> Element(const Schema& schema, const json::Value& value,
                                     const Path& path, const Path& type_path,
                                     std::string_view owner) {
    const bool scalar = schema.items->type != Type::kObject && schema.items->type != Type::kMap &&
                        schema.items->type != Type::kArray;
    if (value.IsNull()) {
      if (!options_.drop_empty || schema.items->type == Type::kAny) return std::nullopt;
      if (schema.items->type == Type::kObject || schema.items->type == Type::kMap)
        return json::Obj();
      if (schema.items->type == Type::kString || schema.items->type == Type::kBytes)
        return json::Value("");
      if (schema.items->type == Type::kQuantity) return json::Value("0");
      return std::nullopt;
    }
    return Any(*schema.items, value, scalar ? type_path : path, owner);
  }

  std::optional<json::Value> Scalar(const Schema& schema, const json::Value& value,
                                    const Path& path, std::string_view owner) {
    switch (schema.type) {
      case Type::kString:
        if (!value.IsString()) return WrongType(schema, value, path, owner);
        return std::nullopt;
      case Type::kBoolean:
        if (!value.IsBool()) return WrongType(schema, value, path, owner);
        return std::nullopt;
      case Type::kNumber:
        if (!value.IsNumber()) return WrongType(schema, value, path, owner);
        return std::nullopt;
      case Type::kInteger:
        if (!IsInteger(schema, value)) return WrongType(schema, value, path, owner);
        return std::nullopt;
      case Type::kIntOrString:
        if (!value.IsString() && !(value.IsNumber() && value.Int()))
          return WrongType(schema, value, path, owner);
        return std::nullopt;
      case Type::kBytes:
        return Bytes(schema, value, path, owner);
      case Type::kQuantity:
        return Quantity(value, path);
      case Type::kTime:
      case Type::kMicroTime:
        return Instant(schema, value, path, owner);
      default:
        return std::nullopt;
    }
  }

  static bool IsInteger(const Schema& schema, const json::Value& value) {
    const std::string_view token = value.NumberToken();
    int64_t number = 0;
    const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), number);
    if (token.empty() || error != std::errc() || end != token.data() + token.size()) return false;
    return schema.format != "int32" || (number >= INT32_MIN && number <= INT32_MAX);
  }

  std::optional<json::Value> Bytes(const Schema& schema, const json::Value& value, const Path& path,
                                   std::string_view owner) {
    if (!value.IsString()) return WrongType(schema, value, path, owner);
    // Go ignores line ends inside base64, and the bits that the last character has too many.
    std::string text = value.Str();
    std::erase_if(text, [](char c) { return c == '\n' || c == '\r'; });
    const std::optional<std::string> bytes = Base64Decode(text);
    if (!bytes) {
      const size_t fault = std::min(text.find_first_not_of(kBase64Alphabet), text.size());
      status_ = Error(Reason::kBadRequest, "illegal base64 data at input byte {} of {}", fault,
                      path.ToString());
      return std::nullopt;
    }
    const std::string canonical = Base64Encode(*bytes);
    if (value.AsString() == canonical) return std::nullopt;
    return json::Value(canonical);
  }

  std::optional<json::Value> Quantity(const json::Value& value, const Path& path) {
    const std::string_view text = value.IsNumber() ? value.NumberToken() : value.AsString();
    const Result<Amount> amount = ParseAmount(Trim(text));
    if (!amount) {
      status_ = amount.error().WithPrefix(path.ToString() + ": ");
      return std::nullopt;
    }
    const std::string canonical = amount->Canonical();
    if (value.IsString() && canonical == text) return std::nullopt;
    return json::Value(canonical);
  }

  std::optional<json::Value> Instant(const Schema& schema, const json::Value& value,
                                     const Path& path, std::string_view owner) {
    if (!value.IsString()) return WrongType(schema, value, path, owner);
    const std::string_view text = value.AsString();
    const std::optional<Time> time = ParseTime(text);
    if (!time) {
      status_ = Error(Reason::kBadRequest,
                      "{}: parsing time \"{}\" as \"2006-01-02T15:04:05{}Z07:00\": expected an RFC "
                      "3339 time such as 2026-01-02T03:04:05Z",
                      path.ToString(), text, schema.type == Type::kMicroTime ? ".000000" : "");
      return std::nullopt;
    }
    const std::string canonical =
        schema.type == Type::kTime ? FormatTime(*time) : FormatMicroTime(*time);
    if (canonical == text) return std::nullopt;
    return json::Value(canonical);
  }

  ConformOptions options_;
  std::vector<std::string>* const unknown_;
  Status status_;
};

}  // namespace

Result<json::Value> Conform(const Schema& schema, const json::Value& value,
                            const ConformOptions& options, std::vector<std::string>* unknown) {
  Walk walk(options, unknown);
  std::optional<json::Value> changed = walk.Any(schema, value, Path(), LastParts(schema.name, 1));
  if (!walk.status().ok()) return Error(walk.status());
  return changed ? std::move(*changed) : value;
}

Result<json::Value> Conform(const Kind& kind, const json::Value& object,
                            std::vector<std::string>* unknown) {
  if (!object.IsObject()) {
    return Error(Reason::kBadRequest,
                 "{} in version \"{}\" cannot be handled as a {}: expected a JSON object, found {}",
                 kind.kind, kind.version, kind.kind, Found(object));
  }
  ConformOptions options;
  options.drop_empty = options.check_types = !kind.custom;
  Result<json::Value> result = Conform(*kind.schema, object, options, unknown);
  Status status = result ? Status::Ok() : result.error();
  if (result && kind.custom) status = CheckCostOfDefaults(*kind.schema, *result);
  if (status.ok()) return result;
  return Error(status.WithPrefix(fmt::format(
      "{} in version \"{}\" cannot be handled as a {}: ", kind.kind, kind.version, kind.kind)));
}

std::vector<std::string> StrictDecodingWarnings(const std::vector<std::string>& unknown,
                                                const std::vector<std::string>& duplicates) {
  std::vector<std::string> texts;
  for (const std::string& path : unknown)
    texts.push_back(fmt::format("unknown field \"{}\"", path));
  for (const std::string& path : duplicates)
    texts.push_back(fmt::format("duplicate field \"{}\"", path));
  return texts;
}

Status StrictDecodingError(const Kind& kind, const std::vector<std::string>& unknown,
                           const std::vector<std::string>& duplicates) {
  const std::vector<std::string> texts = StrictDecodingWarnings(unknown, duplicates);
  if (texts.empty()) return Status::Ok();
  return Error(Reason::kBadRequest,
               "{} in version \"{}\" cannot be handled as a {}: strict decoding error: {}",
               kind.kind, kind.version, kind.kind, Join(texts, ", "));
}

}  // namespace muster::schema
