// The registry of models (registry.muster.dev): muster's own kinds, with the bounds that hold for
// MLflow's clients too.

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <fmt/core.h>

#include "schema/model_names.h"
#include "schema/validation/kind_validation.h"

namespace muster::schema {
namespace {

using json::Value;

void CheckText(const Value& text, size_t most, const Path& path, FieldErrors& errors) {
  if (text.AsString().size() > most) errors.TooLong(path, most);
}

void CheckWords(const Value& words, size_t most, size_t most_bytes, const Path& path,
                FieldErrors& errors) {
  if (words.size() > most) return errors.TooMany(path, words.size(), most);
  for (const auto& [key, value] : words.members()) {
    if (key.empty() || key.size() > kMaxRegistryKeyBytes)
      errors.Invalid(path, Value(key),
                     fmt::format("must have 1 to {} bytes", kMaxRegistryKeyBytes));
    CheckText(value, most_bytes, path.Key(key), errors);
  }
}

// The object is called after spec.name.
void CheckName(const Value& object, std::string_view what, FieldErrors& errors) {
  const std::string_view name = object["spec"]["name"].AsString();
  const std::string_view called = object["metadata"]["name"].AsString();
  if (name.size() > kMaxModelNameBytes)
    return errors.TooLong(Path("spec").Child("name"), kMaxModelNameBytes);
  const std::string wanted = ModelObjectName(name.empty() ? called : name);
  if (wanted != called) {
    errors.Invalid(Path("metadata").Child("name"), object["metadata"]["name"],
                   fmt::format("the object of this {} must be called {}", what, wanted));
  }
}

bool IsMetricValue(std::string_view text) {
  constexpr std::array<std::string_view, 3> kOthers = {"NaN", "Infinity", "-Infinity"};
  if (std::ranges::find(kOthers, text) != kOthers.end()) return true;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return text.size() <= kMaxMetricDigits && error == std::errc() &&
         end == text.data() + text.size() && std::isfinite(number);
}

}  // namespace

void ValidateRegisteredModel(const Value& model, FieldErrors& errors) {
  const Value& spec = model["spec"];
  const Path path("spec");
  CheckName(model, "model", errors);
  // models:/NAME/VERSION and NAME:VERSION would not say which is which.
  if (spec["name"].AsString().find_first_of("/:") != std::string_view::npos)
    errors.Invalid(path.Child("name"), spec["name"], "cannot contain '/' or ':'");
  CheckText(spec["description"], kMaxRegistryTextBytes, path.Child("description"), errors);
  CheckWords(spec["tags"], kMaxRegistryTags, kMaxRegistryTextBytes, path.Child("tags"), errors);
  const Path aliases = path.Child("aliases");
  if (spec["aliases"].size() > kMaxModelAliases)
    return errors.TooMany(aliases, spec["aliases"].size(), kMaxModelAliases);
  for (const auto& [alias, version] : spec["aliases"].members()) {
    if (alias.empty() || alias.size() > kMaxRegistryKeyBytes) {
      errors.Invalid(aliases, Value(alias),
                     fmt::format("must have 1 to {} bytes", kMaxRegistryKeyBytes));
    }
    if (version.AsInt() < 1)
      errors.Invalid(aliases.Key(alias), version, "must be the number of a version");
  }
}

void ValidateModelVersion(const Value& version, FieldErrors& errors) {
  const Value& spec = version["spec"];
  const Path path("spec");
  const std::string_view model = spec["model"].AsString();
  if (model.empty()) return errors.Required(path.Child("model"));
  const bool fits = model.size() <= kMaxModelObjectName &&
                    errors.Check(CheckDns1123Subdomain, path.Child("model"), spec["model"]);
  if (model.size() > kMaxModelObjectName) errors.TooLong(path.Child("model"), kMaxModelObjectName);
  const int64_t number = spec["version"].AsInt();
  if (number < 1) errors.Invalid(path.Child("version"), spec["version"], "must be 1 or more");
  const std::string wanted = ModelVersionObjectName(model, number);
  if (fits && number >= 1 && version["metadata"]["name"].AsString() != wanted) {
    errors.Invalid(Path("metadata").Child("name"), version["metadata"]["name"],
                   fmt::format("the object of this version must be called {}", wanted));
  }
  for (const char* field : {"source", "runID", "runLink", "description", "user"})
    CheckText(spec[field], kMaxRegistryTextBytes, path.Child(field), errors);
  CheckWords(spec["tags"], kMaxRegistryTags, kMaxRegistryTextBytes, path.Child("tags"), errors);
}

void ValidateModelVersionUpdate(const Value& before, const Value& after, FieldErrors& errors) {
  for (const char* field : {"model", "version"}) {
    if (before["spec"][field] != after["spec"][field])
      errors.Invalid(Path("spec").Child(field), after["spec"][field], kImmutable);
  }
}

void ValidateExperiment(const Value& experiment, FieldErrors& errors) {
  const Value& spec = experiment["spec"];
  const Path path("spec");
  CheckName(experiment, "experiment", errors);
  if (experiment["metadata"]["name"].AsString() == kDefaultExperimentId) {
    errors.Invalid(Path("metadata").Child("name"), experiment["metadata"]["name"],
                   "is what clients call Default, which has no object");
  }
  CheckText(spec["artifactLocation"], kMaxRegistryTextBytes, path.Child("artifactLocation"),
            errors);
  CheckWords(spec["tags"], kMaxRegistryTags, kMaxRegistryTextBytes, path.Child("tags"), errors);
}

void ValidateRun(const Value& run, FieldErrors& errors) {
  const Value& spec = run["spec"];
  const Path path("spec");
  CheckText(spec["name"], kMaxRegistryTextBytes, path.Child("name"), errors);
  CheckText(spec["user"], kMaxRegistryTextBytes, path.Child("user"), errors);
  CheckText(spec["artifactLocation"], kMaxRegistryTextBytes, path.Child("artifactLocation"),
            errors);
  if (spec["experiment"].AsString().size() > kMaxModelObjectName)
    errors.TooLong(path.Child("experiment"), kMaxModelObjectName);
  CheckWords(spec["params"], kMaxRunParams, kMaxRegistryTextBytes, path.Child("params"), errors);
  CheckWords(spec["tags"], kMaxRegistryTags, kMaxRegistryTextBytes, path.Child("tags"), errors);
  const Path status("status");
  const Path metrics = status.Child("metrics");
  const Value& values = run["status"]["metrics"];
  if (values.size() > kMaxRunMetrics) return errors.TooMany(metrics, values.size(), kMaxRunMetrics);
  for (const auto& [key, metric] : values.members()) {
    const Path place = metrics.Key(key);
    if (key.empty() || key.size() > kMaxRegistryKeyBytes)
      errors.Invalid(metrics, Value(key),
                     fmt::format("must have 1 to {} bytes", kMaxRegistryKeyBytes));
    if (!IsMetricValue(metric["value"].AsString())) {
      errors.Invalid(place.Child("value"), metric["value"],
                     "must be a number, NaN, Infinity or -Infinity");
    }
  }
}

}  // namespace muster::schema
