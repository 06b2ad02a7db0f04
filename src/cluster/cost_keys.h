// src/cluster/cost_keys.h
//
// Annotations and labels that say whom a pod's cost concerns. Of pods that are gone these are
// remembered and no others; of training jobs pods inherit them.
// Source: seed article gpu-orchestration (the first three); the tags that FinOps teams use.

#pragma once

#include <string_view>

namespace muster::cluster {

inline constexpr std::string_view kCostKeys[] = {"cost-center", "project",    "owner",       "team",
                                                 "user",        "department", "environment", "app"};

}  // namespace muster::cluster
