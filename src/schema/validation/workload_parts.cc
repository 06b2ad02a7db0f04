#include "schema/validation/workload_parts.h"

#include <algorithm>
#include <optional>

#include "base/strings.h"
#include "schema/label_selector.h"
#include "schema/validation/kind_validation.h"

namespace muster::schema {
namespace {

using json::Value;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// The number before the "%"; nullopt for anything else. Beyond 32 bits: the largest.
std::optional<int64_t> PercentOf(const Value& value) {
  std::string_view text = value.AsString();
  if (text.size() < 2 || text.back() != '%') return std::nullopt;
  text.remove_suffix(1);
  if (!std::ranges::all_of(text, IsDigit)) return std::nullopt;
  return std::min<int64_t>(ParseInt(text).value_or(INT32_MAX), INT32_MAX);
}

}  // namespace

void ValidatePodTemplateMetadata(const Value& pod_template, const Path& path, FieldErrors& errors) {
  // Upstream leaves "metadata" out of these paths.
  const Value& metadata = pod_template["metadata"];
  ValidateLabels(metadata["labels"], path.Child("labels"), errors);
  ValidateAnnotations(metadata["annotations"], path.Child("annotations"), errors);
  ValidatePodAnnotations(pod_template, path.Child("annotations"), errors);
}

void ValidatePodTemplate(const Value& pod_template, const Path& path, FieldErrors& errors) {
  ValidatePodTemplateMetadata(pod_template, path, errors);
  const Path spec = path.Child("spec");
  ValidatePodSpec(pod_template["spec"], spec, errors);
  if (!pod_template["spec"]["ephemeralContainers"].empty()) {
    errors.Forbidden(spec.Child("ephemeralContainers"),
                     "ephemeral containers not allowed in pod template");
  }
}

void ValidateSelectorMatches(const Value& spec, const Path& path, FieldErrors& errors) {
  const Result<LabelSelector> selector = LabelSelector::FromJson(spec["selector"]);
  const Value& labels = spec["template"]["metadata"]["labels"];
  if (!selector)
    return errors.Invalid(path.Child("selector"), spec["selector"], "invalid label selector");
  if (selector->Matches(labels)) return;
  const Path pod_template = path.Child("template");
  const Path metadata = pod_template.Child("metadata");
  errors.Invalid(metadata.Child("labels"), labels, "`selector` does not match template `labels`");
}

void ValidateUnchanged(const Value& before, const Value& after, const Path& path,
                       FieldErrors& errors) {
  if (!(before == after)) errors.Invalid(path, after, kImmutable);
}

void ValidateNotNegative(const Value& object, const Path& path,
                         std::initializer_list<std::string_view> keys, FieldErrors& errors) {
  for (const std::string_view key : keys) errors.NotNegative(path.Child(key), object[key]);
}

void ValidateIntOrPercent(const Value& value, const Path& path, FieldErrors& errors) {
  if (!value.IsString()) {
    errors.NotNegative(path, value);
  } else if (!PercentOf(value)) {
    errors.Invalid(path, value,
                   "a valid percent string must be a numeric string followed by an ending '%' "
                   "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')");
  }
}

void ValidateAtMostAll(const Value& value, const Path& path, FieldErrors& errors) {
  if (PercentOf(value).value_or(0) > 100)
    errors.Invalid(path, value, "must not be greater than 100%");
}

bool IsNone(const Value& int_or_percent) {
  if (!int_or_percent.IsString()) return int_or_percent.AsInt() == 0;
  return PercentOf(int_or_percent).value_or(0) == 0;
}

}  // namespace muster::schema
