// src/cli/ray_words.h
//
// What the commands say of a RayCluster, RayJob or RayService (ray.io/v1).
//
// Thread: any (pure functions).

#pragma once

#include <string>
#include <string_view>

#include "json/value.h"

namespace muster::cli {

inline constexpr const char* kRayPlurals[] = {"rayclusters", "rayjobs", "rayservices"};

bool IsRayKind(std::string_view kind);
// The cluster that it is, or runs on; "" if there is none yet.
std::string RayClusterOf(const json::Value& object);
// One word: "ready", "Running", "Complete"; "New" before anything happened.
std::string RayStateOf(const json::Value& object);
bool IsRayOver(const json::Value& object);
// Behind "RayCluster c": "is ready: 2 of 2 workers are ready".
std::string SentenceForRay(const json::Value& object);

}  // namespace muster::cli
