// src/ray/service_pass.h
//
// One pass over one RayService. Pure.
//
//   a cluster of the spec's hash is made (pending), its head gets the applications (serveConfigV2)
//   all applications RUNNING and a pod that takes requests: the Services switch to it, it is active
//   the one before is deleted rayClusterDeletionDelaySeconds later
//
// The hash leaves out the groups' sizes, which change the active cluster in place, and so do the
// applications. What Ray Serve says is asked of the dashboard, every kServicePeriod, and every
// kCalmPeriod once all is well; its proxies that are healthy tell which pods get `ray.io/serve`.
//
// Thread:     any.
// Invariants: both Services change their selector after the new cluster has answered, never before,
//             so an upgrade refuses no request (kuberay#1559); what was put to a head is a hash on
//             the RayCluster, and is put again when the head has lost it.

#pragma once

#include <string>
#include <vector>

#include "base/time.h"
#include "client/reconcile.h"
#include "json/value.h"

namespace muster::ray {

inline constexpr Duration kServicePeriod = seconds(2);
inline constexpr Duration kCalmPeriod = seconds(10);
inline constexpr int64_t kDefaultDeletionDelaySeconds = 60;

// On a RayCluster of a RayService.
inline constexpr std::string_view kClusterHashAnnotation =
    "ray.io/hash-without-replicas-and-workers-to-delete";
inline constexpr std::string_view kServeConfigAnnotation = "ray.muster.dev/serve-config";
inline constexpr std::string_view kReplacedAtAnnotation = "ray.muster.dev/replaced-at";

struct ServiceChildren {
  std::vector<json::Value> clusters;        // controlled by the RayService
  std::vector<json::Value> pods;            // of these clusters
  json::Value head_service, serve_service;  // of the RayService; null if there is none
};

// "s-head-svc", "s-serve-svc"
std::string HeadServiceOf(const json::Value& ray_service);
std::string ServeServiceOf(const json::Value& ray_service);

client::Reconciled ReconcileService(const json::Value& ray_service, const ServiceChildren& children,
                                    const client::Observations& observations, Time now,
                                    uint64_t seed);

}  // namespace muster::ray
