// src/gpu/labels.h
//
// The labels of a node with GPUs, as NVIDIA's GPU feature discovery writes them, so that manifests
// which select nodes by them work (names and forms: gpu-feature-discovery without MIG; gpu.present
// is the GPU operator's).
//
// Thread: any (pure).

#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/inventory.h"
#include "gpu/time_slicing.h"
#include "json/value.h"

namespace muster::gpu {

// Every label that NodeLabels() may give: those that it does not give are to be removed.
std::span<const std::string_view> AllNodeLabels();

// `machine` is the DMI product name. {} without GPUs.
json::Value NodeLabels(const Inventory& inventory, const std::vector<Gpu>& gpus,
                       std::string_view machine, const TimeSlicing& slicing = {});

// A label's value: spaces become '-', what no label may have is left out; at most 63 characters.
std::string LabelValue(std::string_view text);

// "hopper" of 9.0.
std::string_view Family(int64_t compute_major, int64_t compute_minor);

}  // namespace muster::gpu
