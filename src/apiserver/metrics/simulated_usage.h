// src/apiserver/metrics/simulated_usage.h
//
// What pods on simulated nodes are said to use: their annotations muster.dev/simulated-cpu ("250m")
// and muster.dev/simulated-memory ("64Mi") say it for each container, so that an autoscaler can be
// tried without load; without them, half of the request.
//
// Thread: any (pure).

#pragma once

#include <string_view>
#include <vector>

#include "apiserver/metrics/node_stats.h"
#include "json/value.h"

namespace muster::apiserver {

inline constexpr std::string_view kSimulatedLabel = "muster.dev/simulated";
inline constexpr Duration kSimulatedWindow = seconds(15);

std::vector<ContainerUsage> SimulatedUsage(const json::Value& pod, Time now);

}  // namespace muster::apiserver
