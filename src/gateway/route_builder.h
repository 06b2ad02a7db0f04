// src/gateway/route_builder.h
//
// From the informers to a RouteTable. Weights come from the status that the serving controller
// wrote; a group without ready pods keeps its weight, and the proxy passes it over. Whoever may
// write EndpointSlices must not lead the gateway where only its machine can go: a backend is an IP
// address (no name that could mean anything), not the gateway's own, and none of a loopback or
// link-local range.
//
// Thread: the control-plane loop.

#pragma once

#include <map>
#include <memory>

#include "client/informer.h"
#include "gateway/route_table.h"

namespace muster::gateway {

// Counters outlive tables: by Deployment.
using CounterMap = std::map<client::ObjectKey, std::shared_ptr<TrafficCounters>>;

struct RouteSources {
  client::Informer& services;  // InferenceServices
  client::Informer& graphs;    // InferenceGraphs
  client::Informer& deployments;
  client::Informer& cluster_services;  // core/v1
  client::Informer& slices;            // with the index kSlicesByService
  client::Informer& pods;
};
inline constexpr char kSlicesByService[] = "gateway-service";  // "namespace/name"

// What the builder reads; adds the index. REQUIRES: before the informers start.
RouteSources WatchRouteSources(client::InformerSet& informers);
// `own_address`: of the gateway and of the API server for pods; no pod has it.
std::shared_ptr<const RouteTable> BuildRoutes(const RouteSources& sources, CounterMap& counters,
                                              std::string_view own_address);
// Whether requests may be sent there.
bool IsBackendAddress(const std::string& address, std::string_view own_address);

}  // namespace muster::gateway
