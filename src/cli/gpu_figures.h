// src/cli/gpu_figures.h
//
// What the nodes measure of their GPUs, from the metrics that the API server gathers
// (gpu/gpu_metrics.h).
//
// Thread: the loop thread.

#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/status.h"
#include "cli/session.h"

namespace muster::cli {

// By metric: "DCGM_FI_DEV_GPU_UTIL" is "37".
using Figures = std::map<std::string, std::string>;
// By UUID.
using GpuFigures = std::map<std::string, Figures>;

// Of Prometheus' text format.
GpuFigures ParseGpuFigures(std::string_view metrics);
Result<GpuFigures> ReadGpuFigures(Session& session);

}  // namespace muster::cli
