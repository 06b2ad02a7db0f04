// src/apiserver/aggregation/aggregated_discovery.h
//
// The entry of one aggregated group version in the aggregated discovery document, made of the
// APIResourceList that its server gave. Source: k8s.io/apiserver pkg/endpoints/discovery.
//
// Thread: any (pure functions).

#pragma once

#include "apiserver/aggregation/api_service.h"
#include "json/value.h"

namespace muster::apiserver {

// An APIVersionDiscovery. `list`: null if nothing is known; then, or while the service is not
// available, it says "Stale", and clients name the group version as one that failed.
json::Value DiscoveryOf(const ApiService& service, const json::Value& list);

}  // namespace muster::apiserver
