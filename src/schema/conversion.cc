#include "schema/conversion.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "schema/autoscaler_conversion.h"
#include "schema/validation.h"

namespace muster::schema {
namespace {

struct Rule {
  std::string_view group, kind, version, stored_version;
  Converted (*to_stored)(const json::Value& object);
  json::Value (*from_stored)(const json::Value& object);
};

constexpr std::array<Rule, 1> kRules = {{{"autoscaling", "HorizontalPodAutoscaler", "v1", "v2",
                                          AutoscalerToStored, AutoscalerFromStored}}};

json::Value WithTypeOf(const Kind& kind, const json::Value& object) {
  return object.Set("kind", kind.kind).Set("apiVersion", kind.GroupVersion());
}

// `path` is `field` or lies below it.
bool LiesIn(std::string_view path, std::string_view field) {
  if (!path.starts_with(field)) return false;
  return path.size() == field.size() || path[field.size()] == '.' || path[field.size()] == '[';
}

}  // namespace

Converted ToStored(const Kind& kind, const json::Value& object) {
  if (kind.conversion == nullptr) return {object, {}};
  Converted converted = kind.conversion->to_stored(object);
  converted.object = WithTypeOf(*kind.conversion->stored, converted.object);
  return converted;
}

json::Value FromStored(const Kind& kind, const json::Value& object) {
  if (kind.conversion == nullptr) return object;
  return WithTypeOf(kind, kind.conversion->from_stored(object));
}

Status InSpokenFields(const Kind& kind, const std::vector<MovedField>& moved,
                      const Status& status) {
  if (status.reason() != Reason::kInvalid || status.details().causes.empty()) return status;
  std::vector<StatusCause> causes = status.details().causes;
  bool changed = false;
  for (StatusCause& cause : causes) {
    const auto field = std::ranges::find_if(
        moved, [&](const MovedField& one) { return LiesIn(cause.field, one.stored); });
    if (field == moved.end()) continue;
    cause.field = field->spoken + cause.field.substr(field->stored.size());
    changed = true;
  }
  return changed ? InvalidError(kind, status.details().name, std::move(causes)) : status;
}

void ConnectConversions(const std::vector<std::shared_ptr<Kind>>& kinds) {
  const auto find = [&](const Rule& rule, std::string_view version) {
    const auto found = std::ranges::find_if(kinds, [&](const std::shared_ptr<Kind>& kind) {
      return kind->group == rule.group && kind->kind == rule.kind && kind->version == version;
    });
    CHECK_MSG(found != kinds.end(), std::string(rule.kind));
    return *found;
  };
  for (const Rule& rule : kRules) {
    const std::shared_ptr<Kind> kind = find(rule, rule.version);
    kind->storage = false;
    kind->conversion = std::make_shared<const Conversion>(
        Conversion{find(rule, rule.stored_version), rule.to_stored, rule.from_stored});
  }
}

}  // namespace muster::schema
