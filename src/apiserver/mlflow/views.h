// src/apiserver/mlflow/views.h
//
// Objects of the registry as MLflow's clients read them, and the fields that they search by.
//
// Thread: any (pure functions).

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "json/value.h"

namespace muster::apiserver {

// The name that MLflow's clients use of a model or an experiment.
std::string NameOf(const json::Value& object);

// `versions`: of this model; the latest of each stage are told.
json::Value ModelView(const json::Value& model, const json::Array& versions);
json::Value VersionView(const json::Value& version, const json::Value& model);
json::Value RunView(const json::Value& run, bool with_data);
json::Value ExperimentView(const json::Value& experiment);
// As an object: it has none.
json::Value DefaultExperiment();

// The last of each stage.
json::Array LatestOfStages(const json::Array& versions);

// FieldLookups of search_filter.h.
std::optional<json::Value> ModelField(const json::Value& model, const std::string& field);
std::optional<json::Value> VersionField(const json::Value& version, const std::string& field);
std::optional<json::Value> RunField(const json::Value& run, const std::string& field);
std::optional<json::Value> ExperimentField(const json::Value& experiment, const std::string& field);

// [{"key": k, "value": v}] and {k: v}.
json::Value PairsOf(const json::Value& map);
json::Value MapOf(const json::Value& pairs);

inline constexpr const char* kDefaultExperimentName = "Default";

}  // namespace muster::apiserver
