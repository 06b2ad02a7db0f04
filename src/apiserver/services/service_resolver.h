// src/apiserver/services/service_resolver.h
//
// Where a Service of this cluster is reached from here: one of its ready endpoints, as the
// EndpointSlices in the store say. Messages: k8s.io/apiserver pkg/util/proxy.
//
// Thread: the loop thread.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "apiserver/core.h"
#include "base/status.h"

namespace muster::apiserver {

struct ResolvedService {
  std::string host;
  uint16_t port = 0;
  bool in_cluster = true;  // false: an ExternalName
};

// Why a Service leads nowhere.
enum class ServiceProblem : uint8_t { kNone, kNoService, kNoPort, kNoSlices, kNoEndpoints };

struct ServiceLookup {
  ServiceProblem problem = ServiceProblem::kNone;
  ResolvedService service;
  std::string port_name;  // of the Service's port, if it has it
};

// A ready endpoint, by chance.
ServiceLookup LookUpService(Core& core, std::string_view ns, std::string_view name, int64_t port);

// The same, or NotFound without the Service, ServiceUnavailable without the port or a ready
// endpoint.
Result<ResolvedService> ResolveService(Core& core, std::string_view ns, std::string_view name,
                                       int64_t port);

}  // namespace muster::apiserver
