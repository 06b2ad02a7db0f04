// src/gpu/gpu_metrics.h
//
// The GPUs of a node as Prometheus text, with the names and labels of NVIDIA's dcgm-exporter, so
// that its dashboards and alerts work: DCGM_FI_DEV_GPU_UTIL and _MEM_COPY_UTIL (percent), _FB_USED
// and _FB_FREE (MiB), _GPU_TEMP (degrees Celsius), _POWER_USAGE (watts), _XID_ERRORS (the latest
// XID, 0 without one). Beside these _SM_CLOCK and _MAX_SM_CLOCK (MHz), _CLOCK_THROTTLE_REASONS
// (bits) and _ECC_DBE_VOL_TOTAL tell of a GPU that is slower than its peers. What the driver does
// not tell is left out. muster_gpu_healthy is ours: 1 while the GPU is offered to pods.
//
// A GPU is a series with the pod that has it. One that pods share is a series for each of them and
// one without a pod; all say what the whole GPU does, because the driver tells no more.
//
// Thread: any (pure).

#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/gpu_health.h"

namespace muster::gpu {

// Who has a GPU or a share of it.
struct GpuUser {
  std::string ns, pod, container;
};

std::string GpuMetricsText(
    const GpuHealth& health, std::string_view node,
    const std::function<std::vector<GpuUser>(const std::string& uuid)>& users_of);

}  // namespace muster::gpu
