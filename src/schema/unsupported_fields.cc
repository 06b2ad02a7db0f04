#include "schema/unsupported_fields.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "base/strings.h"
#include "schema/conform.h"
#include "schema/path.h"

namespace muster::schema {
namespace {

// Booleans whose false restricts and whose true asks for nothing.
constexpr std::array<std::string_view, 2> kFalseRestricts = {"allowPrivilegeEscalation",
                                                             "hostUsers"};

// Whether the value asks for something: an absent field, "", 0, false and empty containers do not.
bool Asks(const Field& field, const json::Value& value) {
  switch (value.kind()) {
    case json::Kind::kNull:
      return false;
    case json::Kind::kBool:
      return value.AsBool() != (std::find(kFalseRestricts.begin(), kFalseRestricts.end(),
                                          field.name) != kFalseRestricts.end());
    case json::Kind::kNumber:
      return value.AsDouble() != 0;
    case json::Kind::kString:
      return !value.AsString().empty() && !(value == field.default_value);
    default:
      return !value.empty();
  }
}

Field::Support SupportOfText(const Field& field, const std::string& text) {
  const auto is_in = [&](const std::vector<std::string>& values) {
    return std::find(values.begin(), values.end(), text) != values.end();
  };
  if (is_in(field.acted_on_values)) return Field::Support::kActedOn;
  return is_in(field.loosening_values) ? Field::Support::kNotYet : field.support;
}

// Adds the field if something of its value is not acted on; of a list, what matters most says what
// happens.
void CollectField(const Field& field, const json::Value& value, const Path& path,
                  std::vector<UnsupportedField>& found) {
  if (!Asks(field, value)) return;
  UnsupportedField fault{path.ToString()};
  Field::Support most = field.support;
  const bool by_value = !field.acted_on_values.empty() || !field.loosening_values.empty();
  if (by_value) {
    most = Field::Support::kActedOn;
    const json::Array texts =
        value.kind() == json::Kind::kArray ? value.items() : json::Array{value};
    for (const json::Value& text : texts) {
      const Field::Support support = SupportOfText(field, text.Str());
      if (support == Field::Support::kActedOn) continue;
      most = std::max(most, support);
      fault.values.push_back(text.Str());
    }
  }
  if (most == Field::Support::kActedOn) return;
  fault.restricts = most == Field::Support::kRestrictsNotYet;
  fault.loosens = by_value && !fault.restricts;
  found.push_back(std::move(fault));
}

void Collect(const Schema& schema, const json::Value& value, const Path& path,
             std::vector<UnsupportedField>& found) {
  if (schema.type == Type::kArray && schema.items != nullptr) {
    for (size_t i = 0; i < value.size(); ++i)
      Collect(*schema.items, value.At(i), path.Index(i), found);
    return;
  }
  if (schema.type == Type::kMap && schema.items != nullptr) {
    for (const auto& [key, member] : value.members())
      Collect(*schema.items, member, path.Child(key), found);
    return;
  }
  if (schema.type != Type::kObject) return;
  for (const auto& [key, member] : value.members()) {
    const Field* field = schema.Find(key);
    if (field == nullptr || found.size() >= kMaxReportedFields) continue;
    const Path place = path.Child(key);
    if (field->support == Field::Support::kActedOn) {
      Collect(*field->schema, member, place, found);
      continue;
    }
    CollectField(*field, member, place, found);
  }
}

}  // namespace

std::string UnsupportedField::ToString() const {
  return fmt::format("{}{}{} {} not acted on yet{}", path, values.empty() ? "" : ": ",
                     Join(values, ", "), values.size() > 1 ? "are" : "is",
                     restricts ? "; a pod fails rather than run without it"
                     : loosens ? "; a pod runs as if it was not set"
                               : "");
}

std::vector<UnsupportedField> FindUnsupported(const Schema& schema, const json::Value& value) {
  std::vector<UnsupportedField> found;
  Collect(schema, value, Path(), found);
  return found;
}

}  // namespace muster::schema
