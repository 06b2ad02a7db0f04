// src/ray/cluster_status.h
//
// The status of a RayCluster. Conditions are live but for RayClusterProvisioned, which says that
// all pods were ready once; `state` is ready while that holds and the head is ready, so that a
// cluster whose head is gone does not look well (kuberay#2188, #5088).
//
// Thread:     any (pure functions).

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "json/value.h"
#include "ray/cluster.h"

namespace muster::ray {

inline constexpr std::string_view kReady = "ready";
inline constexpr std::string_view kSuspended = "suspended";

inline constexpr std::string_view kHeadPodReady = "HeadPodReady";
inline constexpr std::string_view kProvisioned = "RayClusterProvisioned";
inline constexpr std::string_view kReplicaFailure = "ReplicaFailure";
inline constexpr std::string_view kSuspending = "RayClusterSuspending";
inline constexpr std::string_view kClusterSuspended = "RayClusterSuspended";

// What a server said when the last pass could not write: client::kRefusedWrite, null if it could.
json::Value ClusterStatus(const Cluster& cluster, const std::vector<json::Value>& pods,
                          const json::Value& head_service, const json::Value& refused, Time now);

// `conditions` with this one, in its place or behind the others; the same again changes nothing.
json::Value WithCondition(const json::Value& conditions, std::string_view type, bool holds,
                          std::string_view reason, std::string_view message, int64_t generation,
                          Time now);
json::Value WithoutCondition(const json::Value& conditions, std::string_view type);

}  // namespace muster::ray
