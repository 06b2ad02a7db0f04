// src/schema/job_labels.h
//
// The labels by which a Job knows its pods, unless spec.manualSelector says that the user chose
// some.
//
// Thread: any (pure functions).

#pragma once

#include <string_view>

#include "json/value.h"

namespace muster::schema {

inline constexpr std::string_view kJobUidLabel = "batch.kubernetes.io/controller-uid";
inline constexpr std::string_view kJobNameLabel = "batch.kubernetes.io/job-name";
inline constexpr std::string_view kLegacyJobUidLabel = "controller-uid";
inline constexpr std::string_view kLegacyJobNameLabel = "job-name";

// Of the pods of a Job with this metadata.
inline json::Value GeneratedJobLabels(const json::Value& metadata) {
  const json::Value& name = metadata["name"];
  const json::Value& uid = metadata["uid"];
  return json::Obj({{std::string(kJobUidLabel), uid},
                    {std::string(kJobNameLabel), name},
                    {std::string(kLegacyJobUidLabel), uid},
                    {std::string(kLegacyJobNameLabel), name}});
}

}  // namespace muster::schema
