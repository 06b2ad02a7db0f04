#include "schema/unsupported_fields.h"

#include <algorithm>
#include <array>

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

// What is done with this value; of a list, with the one that matters most.
Field::Support SupportOf(const Field& field, const json::Value& value) {
  if (!Asks(field, value)) return Field::Support::kActedOn;
  if (value.kind() == json::Kind::kString) return SupportOfText(field, value.Str());
  if (value.kind() != json::Kind::kArray || field.acted_on_values.empty()) return field.support;
  Field::Support most = Field::Support::kActedOn;
  for (const json::Value& item : value.items())
    most = std::max(most, SupportOfText(field, item.Str()));
  return most;
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
    const Field::Support support = SupportOf(*field, member);
    if (support != Field::Support::kActedOn)
      found.push_back({place.ToString(), support == Field::Support::kRestrictsNotYet});
  }
}

}  // namespace

std::string UnsupportedField::ToString() const { return path + " is not acted on yet"; }

std::vector<UnsupportedField> FindUnsupported(const Schema& schema, const json::Value& value) {
  std::vector<UnsupportedField> found;
  Collect(schema, value, Path(), found);
  return found;
}

}  // namespace muster::schema
