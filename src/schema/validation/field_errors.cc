#include "schema/validation/field_errors.h"

#include <algorithm>

#include "base/strings.h"
#include "json/utf8.h"
#include "json/write.h"
#include "schema/validation.h"

namespace muster::schema {

std::string GoQuote(std::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const json::DecodedRune decoded = json::DecodeRune(text);
    const uint32_t rune = decoded.rune;
    if (!decoded.valid) {
      quoted += fmt::format("\\x{:02x}", static_cast<uint8_t>(text[0]));
    } else if (rune == '"' || rune == '\\') {
      quoted += '\\';
      quoted += static_cast<char>(rune);
    } else if (constexpr std::string_view kControls = "\a\b\f\n\r\t\v";
               rune < 0x20 && kControls.find(static_cast<char>(rune)) != std::string_view::npos) {
      quoted += '\\';
      quoted += "abfnrtv"[kControls.find(static_cast<char>(rune))];
    } else if (rune < 0x20 || rune == 0x7F) {
      quoted += fmt::format("\\x{:02x}", rune);
    } else {
      quoted += text.substr(0, decoded.size);
    }
    text.remove_prefix(decoded.size);
  }
  return quoted + '"';
}

std::string Shown(const json::Value& value) {
  return value.IsString() ? GoQuote(value.AsString()) : json::Write(value);
}

bool FieldErrors::full() const { return causes_.size() >= kMaxCauses; }

void FieldErrors::Add(std::string_view reason, const Path& path, std::string message) {
  Append({{std::string(reason), path.ToString(), std::move(message)}});
}

void FieldErrors::Append(std::vector<StatusCause> causes) {
  for (StatusCause& cause : causes) {
    if (causes_.size() >= kMaxCauses) return;
    if (std::find(causes_.begin(), causes_.end(), cause) == causes_.end())
      causes_.push_back(std::move(cause));
  }
}

void FieldErrors::Required(const Path& path, std::string_view detail) {
  if (full()) return;
  Add("FieldValueRequired", path,
      detail.empty() ? "Required value" : fmt::format("Required value: {}", detail));
}

void FieldErrors::Invalid(const Path& path, const json::Value& value, std::string_view detail) {
  if (full()) return;
  Add("FieldValueInvalid", path, fmt::format("Invalid value: {}: {}", Shown(value), detail));
}

void FieldErrors::Invalid(const Path& path, std::string_view detail) {
  if (full()) return;
  Add("FieldValueInvalid", path, fmt::format("Invalid value: {}", detail));
}

void FieldErrors::TypeInvalid(const Path& path, const json::Value& value, std::string_view detail) {
  if (full()) return;
  Add("FieldValueTypeInvalid", path, fmt::format("Invalid value: {}: {}", Shown(value), detail));
}

void FieldErrors::Forbidden(const Path& path, std::string_view detail) {
  if (full()) return;
  Add("FieldValueForbidden", path, fmt::format("Forbidden: {}", detail));
}

void FieldErrors::Duplicate(const Path& path, const json::Value& value, std::string_view detail) {
  if (full()) return;
  Add("FieldValueDuplicate", path,
      fmt::format("Duplicate value: {}{}{}", Shown(value), detail.empty() ? "" : ": ", detail));
}

void FieldErrors::NotFound(const Path& path, const json::Value& value) {
  if (full()) return;
  Add("FieldValueNotFound", path, fmt::format("Not found: {}", Shown(value)));
}

void FieldErrors::NotSupported(const Path& path, const json::Value& value,
                               const std::vector<std::string_view>& supported) {
  if (full()) return;
  std::vector<std::string> quoted;
  for (const std::string_view text : supported) {
    quoted.push_back(quoted.size() < kMaxShownChoices ? GoQuote(text) : "...");
    if (quoted.size() > kMaxShownChoices) break;
  }
  std::string message = fmt::format("Unsupported value: {}", Shown(value));
  if (!quoted.empty()) message += ": supported values: " + Join(quoted, ", ");
  Add("FieldValueNotSupported", path, std::move(message));
}

void FieldErrors::TooLong(const Path& path, size_t most_bytes) {
  if (full()) return;
  Add("FieldValueTooLong", path,
      fmt::format("Too long: may not be more than {} bytes", most_bytes));
}

void FieldErrors::TooMany(const Path& path, size_t actual, size_t most) {
  if (full()) return;
  Add("FieldValueTooMany", path,
      fmt::format("Too many: {}: must have at most {} items", actual, most));
}

bool FieldErrors::Check(NameCheck check, const Path& path, const json::Value& value) {
  Problems problems;
  check(value.AsString(), problems);
  for (const std::string& problem : problems) Invalid(path, value, problem);
  return problems.empty();
}

bool FieldErrors::NotNegative(const Path& path, const json::Value& value) {
  if (value.AsDouble() >= 0) return true;
  Invalid(path, value, kNotNegativeMessage);
  return false;
}

bool FieldErrors::Port(const Path& path, const json::Value& value) {
  if (value.AsInt() >= 1 && value.AsInt() <= 65535) return true;
  Invalid(path, value.IsNull() ? json::Value(0) : value, "must be between 1 and 65535, inclusive");
  return false;
}

bool FieldErrors::OneOf(const Path& path, const json::Value& value,
                        const std::vector<std::string_view>& supported) {
  if (value.IsString() &&
      std::find(supported.begin(), supported.end(), value.AsString()) != supported.end())
    return true;
  NotSupported(path, value.IsNull() ? json::Value("") : value, supported);
  return false;
}

}  // namespace muster::schema
