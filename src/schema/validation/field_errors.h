// src/schema/validation/field_errors.h
//
// FieldErrors: collects what is wrong with an object, worded as k8s.io/apimachinery
// pkg/util/validation/field words it.
//
// Life cycle: on the stack of one validation.
// Thread:     that of the validation.
// Invariants: at most kMaxCauses are kept; equal ones are kept once, as upstream's aggregate does.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "json/value.h"
#include "schema/names.h"
#include "schema/path.h"

namespace muster::schema {

inline constexpr size_t kMaxShownChoices = 100;  // supported values that one cause names

class FieldErrors {
 public:
  void Required(const Path& path, std::string_view detail = {});
  void Invalid(const Path& path, const json::Value& value, std::string_view detail);
  void Invalid(const Path& path, std::string_view detail);  // does not show the value
  void TypeInvalid(const Path& path, const json::Value& value, std::string_view detail);
  void Forbidden(const Path& path, std::string_view detail);
  void Duplicate(const Path& path, const json::Value& value, std::string_view detail = {});
  void NotFound(const Path& path, const json::Value& value);
  void NotSupported(const Path& path, const json::Value& value,
                    const std::vector<std::string_view>& supported);
  void TooLong(const Path& path, size_t most_bytes);
  void TooMany(const Path& path, size_t actual, size_t most);

  // Frequent checks. Each says whether the value passed.
  bool Check(NameCheck check, const Path& path, const json::Value& value);
  bool NotNegative(const Path& path, const json::Value& value);  // absent counts as zero
  bool Port(const Path& path, const json::Value& value);
  bool OneOf(const Path& path, const json::Value& value,
             const std::vector<std::string_view>& supported);

  void Append(std::vector<StatusCause> causes);

  bool empty() const { return causes_.empty(); }
  // Whatever is added now is left out.
  bool full() const;
  size_t size() const { return causes_.size(); }
  std::vector<StatusCause> Take() { return std::move(causes_); }

 private:
  void Add(std::string_view reason, const Path& path, std::string message);

  std::vector<StatusCause> causes_;
};

// A value as Go prints it in a field error: strings quoted, numbers as they are, the rest as JSON.
std::string Shown(const json::Value& value);
std::string GoQuote(std::string_view text);  // fmt's %q

inline constexpr std::string_view kImmutable = "field is immutable";
inline constexpr std::string_view kNotNegativeMessage = "must be greater than or equal to 0";

}  // namespace muster::schema
