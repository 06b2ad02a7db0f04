// src/schema/disruption_target.h
//
// The condition DisruptionTarget: a pod goes because of its surroundings, not by its own fault, so
// that what watches over a job need not count such an end against it. Source: KEP-3329.
//
// Thread: any (pure functions).

#pragma once

#include <string_view>

#include "base/time.h"
#include "json/value.h"

namespace muster::schema {

inline constexpr std::string_view kDisruptionTarget = "DisruptionTarget";

// The condition with this reason; the time of one that the pod has already is kept.
json::Value DisruptionTarget(const json::Value& pod, std::string_view reason,
                             std::string_view message, Time now);

}  // namespace muster::schema
