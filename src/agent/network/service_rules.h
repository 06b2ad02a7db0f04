// src/agent/network/service_rules.h
//
// ClusterIP Services as nftables text: pure functions from API objects. The text replaces the whole
// table `muster` in one transaction, so nothing is ever half applied or left over; the spawner
// applies it with ApplyNft().
//
// Thread:     any (pure).
// Invariants: the same Services give the same text; the number of rules does not grow with the
//             number of Services: there is one chain for each *count* of endpoints, and all
//             addresses stand in maps.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/network/host_network.h"
#include "agent/network/ipv4.h"
#include "json/value.h"

namespace muster::agent {

enum class ServiceProtocol : uint8_t { kTcp, kUdp, kSctp };

struct ServiceEndpoint {
  Ipv4 address;
  uint16_t port = 0;
  auto operator<=>(const ServiceEndpoint&) const = default;
};

// One port of one Service with a ClusterIP, and where it leads (ready endpoints; empty: connections
// are refused).
struct ServicePort {
  Ipv4 cluster_ip;
  ServiceProtocol protocol = ServiceProtocol::kTcp;
  uint16_t port = 0;
  bool client_affinity = false;  // sessionAffinity: ClientIP
  std::vector<ServiceEndpoint> endpoints;
  auto operator<=>(const ServicePort&) const = default;
};

inline constexpr size_t kMaxEndpointsPerServicePort = 1000;

// 1 to 65535, else nullopt.
std::optional<uint16_t> ParsePort(const json::Value& value);

// From v1 Service and discovery.k8s.io/v1 EndpointSlice objects. Sorted; headless and address-less
// Services and anything malformed are left out.
std::vector<ServicePort> ServicePorts(const std::vector<json::Value>& services,
                                      const std::vector<json::Value>& endpoint_slices);

// The whole table: HostRules() with these Services. At most kMaxEndpointsPerServicePort endpoints
// of each port are used.
std::string ServiceRules(const NodeNetworkConfig& config, const std::vector<ServicePort>& ports);

}  // namespace muster::agent
