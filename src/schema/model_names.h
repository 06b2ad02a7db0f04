// src/schema/model_names.h
//
// Names in the registry of models: MLflow's clients call a model or an experiment what they like,
// an object has a name of DNS, and a version's object is called after its model and its number.
//
// Thread: any (pure functions).

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::schema {

inline constexpr size_t kMaxModelNameBytes = 250;  // as MLflow's clients call it
// Short enough for a label's value.
inline constexpr size_t kMaxModelObjectName = 63;

// What MLflow's clients call the experiment Default, which has no object.
inline constexpr const char* kDefaultExperimentId = "0";

// The name itself where an object can have it; else its letters and a hash of it.
std::string ModelObjectName(std::string_view name);
std::string ModelVersionObjectName(std::string_view model_object, int64_t version);

}  // namespace muster::schema
