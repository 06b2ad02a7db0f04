// Custom resources against their schema. Messages: k8s.io/kube-openapi pkg/validation and
// apiextensions-apiserver.

#include <re2/re2.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <span>
#include <unordered_map>

#include "base/strings.h"
#include "base/time.h"
#include "json/utf8.h"
#include "json/value_hash.h"
#include "json/write.h"
#include "schema/crd.h"
#include "schema/type_names.h"
#include "schema/validation.h"
#include "schema/validation/field_errors.h"

namespace muster::schema {
namespace {

using json::Value;

constexpr size_t kMaxCachedPatterns = 1000;

// Compiled once per thread; a pattern that RE2 does not take matches everything, as upstream's CRDs
// are checked when they are made.
const RE2& Compiled(const std::string& pattern) {
  thread_local std::unordered_map<std::string, std::unique_ptr<RE2>> cache;
  if (cache.size() >= kMaxCachedPatterns) cache.clear();
  std::unique_ptr<RE2>& entry = cache[pattern];
  if (entry == nullptr) entry = std::make_unique<RE2>(pattern, RE2::Quiet);
  return *entry;
}

std::string_view OpenApiType(const Value& value) {
  const bool digits_only =
      value.IsNumber() && value.NumberToken().find_first_of(".eE") == std::string_view::npos;
  return digits_only ? "integer" : JsonKindName(value.kind());
}

std::string_view TypeName(Type type) {
  if (type == Type::kIntOrString) return "integer,string";
  return type == Type::kAny ? "any" : OpenApiTypeName(type);
}

bool HasType(const Schema& schema, const Value& value) {
  switch (schema.type) {
    case Type::kAny:
      return true;
    case Type::kObject:
    case Type::kMap:
      return value.IsObject();
    case Type::kArray:
      return value.IsArray();
    case Type::kInteger:
      return value.IsNumber() && std::floor(value.AsDouble()) == value.AsDouble();
    case Type::kNumber:
      return value.IsNumber();
    case Type::kBoolean:
      return value.IsBool();
    case Type::kIntOrString:
    case Type::kQuantity:
      return value.IsString() || value.Int().has_value();
    default:
      return value.IsString();
  }
}

std::string Compact(double number) { return std::string(Value(number).NumberToken()); }

class Structural {
 public:
  explicit Structural(FieldErrors& errors) : errors_(errors) {}

  void Any(const Schema& schema, const Field* field, const Value& value, const Path& path) {
    if (errors_.full()) return;
    if (value.IsNull() && (schema.nullable || schema.type == Type::kAny)) return;
    if (!HasType(schema, value)) {
      const std::string_view found = OpenApiType(value);
      errors_.TypeInvalid(
          path, found,
          InBody(path, fmt::format("must be of type {}: \"{}\"", TypeName(schema.type), found)));
      return;
    }
    if (!schema.enum_values.empty()) Enum(schema.enum_values, value, path);
    switch (value.kind()) {
      case json::Kind::kObject:
        return Object(schema, value, path);
      case json::Kind::kArray:
        return Array(schema, field, value, path);
      case json::Kind::kString:
        return Text(schema, value, path);
      case json::Kind::kNumber:
        return Number(schema, value, path);
      default:
        return;
    }
  }

 private:
  std::string InBody(const Path& path, std::string_view rule) {
    return fmt::format("{} in body {}", path.ToString(), rule);
  }

  void Enum(const std::vector<Value>& allowed, const Value& value, const Path& path) {
    // A schema of a megabyte and an object of three may have a hundred thousand of each.
    json::ValueSet& known = enums_[&allowed];
    if (known.empty()) known.insert(allowed.begin(), allowed.end());
    if (known.contains(value)) return;
    std::vector<std::string> texts;  // one more than are shown
    for (const Value& one :
         std::span(allowed).first(std::min(allowed.size(), kMaxShownChoices + 1)))
      texts.push_back(one.IsString() ? one.Str() : json::Write(one));
    errors_.NotSupported(path, value, std::vector<std::string_view>(texts.begin(), texts.end()));
  }

  void Object(const Schema& schema, const Value& value, const Path& path) {
    const Bounds& bounds = schema.bounds;
    if (bounds.min_properties && static_cast<int64_t>(value.size()) < *bounds.min_properties) {
      errors_.Invalid(
          path, value,
          InBody(path, fmt::format("should have at least {} properties", *bounds.min_properties)));
    }
    if (bounds.max_properties && static_cast<int64_t>(value.size()) > *bounds.max_properties) {
      errors_.TooMany(path, value.size(), static_cast<size_t>(*bounds.max_properties));
    }
    for (const Field& field : schema.fields) {
      if (field.required && !value.Has(field.name)) errors_.Required(path.Child(field.name));
    }
    for (const auto& [key, member] : value.members()) {
      const Path place = path.Child(key);
      if (schema.type == Type::kMap) {
        if (schema.items != nullptr) Any(*schema.items, nullptr, member, place);
      } else if (const Field* field = schema.Find(key);
                 field != nullptr && field->schema->name.empty()) {
        // Named schemas are the API's own types (metadata): Conform has checked those.
        Any(*field->schema, field, member, place);
      }
    }
  }

  void Array(const Schema& schema, const Field* field, const Value& value, const Path& path) {
    const Bounds& bounds = schema.bounds;
    if (bounds.min_items && static_cast<int64_t>(value.size()) < *bounds.min_items) {
      errors_.Invalid(
          path, static_cast<int64_t>(value.size()),
          InBody(path, fmt::format("should have at least {} items", *bounds.min_items)));
    }
    if (bounds.max_items && static_cast<int64_t>(value.size()) > *bounds.max_items) {
      errors_.TooMany(path, value.size(), static_cast<size_t>(*bounds.max_items));
    }
    if (bounds.unique_items || (field != nullptr && field->list_type == ListType::kSet)) {
      Unique(value, path, [](const Value& item) { return item; });
    } else if (field != nullptr && field->list_type == ListType::kMap) {
      Unique(value, path, [&](const Value& item) {
        json::Object key;
        for (const std::string& name : field->list_map_keys) {
          if (item.Has(name)) key.emplace_back(name, item[name]);
        }
        return Value(std::move(key));
      });
    }
    if (schema.items == nullptr) return;
    for (size_t i = 0; i < value.size(); ++i)
      Any(*schema.items, nullptr, value.At(i), path.Index(i));
  }

  template <class KeyOf>
  void Unique(const Value& list, const Path& path, KeyOf key_of) {
    std::unordered_map<std::string, size_t> seen;
    for (size_t i = 0; i < list.size(); ++i) {
      const Value key = key_of(list.At(i));
      if (!seen.emplace(json::Write(json::SortKeys(key)), i).second)
        errors_.Duplicate(path.Index(i), key);
    }
  }

  void Text(const Schema& schema, const Value& value, const Path& path) {
    const std::string_view text = value.AsString();
    const Bounds& bounds = schema.bounds;
    if (bounds.min_length || bounds.max_length) {
      const int64_t length =
          std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
      if (bounds.min_length && length < *bounds.min_length) {
        errors_.Invalid(
            path, value,
            InBody(path, fmt::format("should be at least {} chars long", *bounds.min_length)));
      }
      if (bounds.max_length && length > *bounds.max_length)
        errors_.TooLong(path, static_cast<size_t>(*bounds.max_length));
    }
    if (!bounds.pattern.empty()) {
      const RE2& pattern = Compiled(bounds.pattern);
      if (pattern.ok()) pattern_steps_ += static_cast<size_t>(pattern.ProgramSize()) * text.size();
      if (pattern_steps_ > kMaxPatternSteps) {
        return errors_.Invalid(
            path, fmt::format("{} bytes", text.size()),
            "too much text for the pattern of its schema: make the text shorter, or the pattern "
            "in the CustomResourceDefinition simpler");
      }
      if (pattern.ok() && !RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), pattern)) {
        errors_.Invalid(path, value,
                        InBody(path, fmt::format("should match '{}'", bounds.pattern)));
      }
    }
    const bool well_formed = (schema.format != "date-time" || ParseTime(text)) &&
                             (schema.format != "byte" || Base64Decode(text)) &&
                             (schema.format != "ipv4" || IsIpv4(text)) &&
                             (schema.format != "ipv6" || IsIpv6(text));
    if (!well_formed)
      errors_.Invalid(
          path, value,
          InBody(path, fmt::format("must be of type {}: {}", schema.format, GoQuote(text))));
  }

  void Number(const Schema& schema, const Value& value, const Path& path) {
    const Bounds& bounds = schema.bounds;
    const double number = value.AsDouble();
    const auto refuse = [&](std::string_view rule, double bound) {
      errors_.Invalid(path, value,
                      InBody(path, fmt::format("should be {} {}", rule, Compact(bound))));
    };
    if (bounds.minimum) {
      if (bounds.exclusive_minimum ? number <= *bounds.minimum : number < *bounds.minimum) {
        refuse(bounds.exclusive_minimum ? "greater than" : "greater than or equal to",
               *bounds.minimum);
      }
    }
    if (bounds.maximum) {
      if (bounds.exclusive_maximum ? number >= *bounds.maximum : number > *bounds.maximum) {
        refuse(bounds.exclusive_maximum ? "less than" : "less than or equal to", *bounds.maximum);
      }
    }
    if (bounds.multiple_of && *bounds.multiple_of > 0 &&
        std::remainder(number, *bounds.multiple_of) != 0) {
      refuse("a multiple of", *bounds.multiple_of);
    }
    const bool fits = schema.type != Type::kInteger ||
                      (schema.format == "int32" ? number >= INT32_MIN && number <= INT32_MAX
                                                : value.Int().has_value());
    if (!fits)
      errors_.Invalid(
          path, value,
          InBody(path, fmt::format("must fit {}", schema.format == "int32" ? "int32" : "int64")));
  }

  FieldErrors& errors_;
  size_t pattern_steps_ = 0;
  std::unordered_map<const std::vector<Value>*, json::ValueSet> enums_;  // by where they are listed
};

}  // namespace

std::vector<StatusCause> ValidateStructural(const Schema& schema, const Value& value,
                                            std::string_view path) {
  FieldErrors errors;
  Structural structural(errors);
  structural.Any(schema, nullptr, value, path.empty() ? Path() : Path(path));
  return errors.Take();
}

}  // namespace muster::schema
