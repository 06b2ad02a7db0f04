// src/gpu/time_slicing.h
//
// TimeSlicing: how many pods share a GPU by turns, as NVIDIA's device plugin is told it in the
// file config.yaml of its ConfigMap, and the names of the shares.
//
// Thread: any (values and pure functions).
// Source: NVIDIA/k8s-device-plugin, its configuration `version: v1`.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace muster::gpu {

// What shares are offered as with renameByDefault.
inline constexpr std::string_view kSharedGpuResource = "nvidia.com/gpu.shared";

struct TimeSlicing {
  int64_t replicas = 1;   // pods to a GPU; 1: it is not shared
  bool renamed = false;   // offered as kSharedGpuResource
  bool one_each = false;  // failRequestsGreaterThanOne: several shares are no more than one
  bool operator==(const TimeSlicing&) const = default;
};

// Of what the file says, sharing.timeSlicing of nvidia.com/gpu; all else is left unread, `rename`
// and `devices` as by the plugin. Invalid, with the field: it is no such file, or it asks for MPS.
Result<TimeSlicing> ParseTimeSlicing(std::string_view config_yaml);

// "GPU-a::2" is the third share of GPU-a, as the plugin names it.
std::string ShareName(std::string_view gpu, int64_t number);

}  // namespace muster::gpu
