// src/agent/network/service_table.h
//
// ServiceTable: where connections to Services lead, as the node's packet filter has to know it. The
// planner (service_planner.h) makes it of API objects; the spawner puts it into the kernel
// (service_dataplane.h). Between the two it travels as text, one frontend a line:
//
//   10.43.0.7 TCP 80 random 10.42.0.2:8080 10.42.0.3:8080
//
// With session affinity "client/10800", its timeout, stands instead of "random".
// The hostPorts of pods are frontends, too ("host"), with one endpoint each.
//
// Thread: any (values, pure functions).

#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/network/ipv4.h"
#include "base/status.h"

namespace muster::agent {

enum class ServiceProtocol : uint8_t { kTcp, kUdp, kSctp };

// "TCP", "UDP", "SCTP"; TCP if empty.
std::optional<ServiceProtocol> ParseProtocol(std::string_view text);
std::string_view ProtocolName(ServiceProtocol protocol);
// The IP protocol's number.
uint8_t ProtocolNumber(ServiceProtocol protocol);

// What clients connect to.
struct ServiceFrontend {
  Ipv4 address;  // unset: every address of the node (a NodePort or a hostPort)
  ServiceProtocol protocol = ServiceProtocol::kTcp;
  uint16_t port = 0;
  // A pod's hostPort. It counts where `address` is the node's own, is reached at 127.0.0.1 as well,
  // and comes before a NodePort.
  bool host_port = false;

  bool IsNodePort() const { return address.IsUnset() && !host_port; }
  auto operator<=>(const ServiceFrontend&) const = default;
};

struct ServiceEndpoint {
  Ipv4 address;
  uint16_t port = 0;
  auto operator<=>(const ServiceEndpoint&) const = default;
};

// Of datagrams that reached the node itself because their port led nowhere.
inline constexpr ServiceEndpoint kNowhere;

// Where a frontend leads. None at all: it is as if the frontend were not there, and connections are
// refused.
struct ServiceBackend {
  // A client keeps its endpoint as long as that is there and the client comes again within this
  // time; 0: no such thing.
  uint32_t affinity_seconds = 0;
  bool drop = false;  // silence: endpoints there are, but none that this node may use
  std::vector<ServiceEndpoint> endpoints = {};  // sorted, at most kMaxEndpointsPerServicePort

  bool IsNone() const { return endpoints.empty() && !drop; }
  bool operator==(const ServiceBackend&) const = default;
};

inline constexpr size_t kMaxEndpointsPerServicePort = 1000;
inline constexpr uint32_t kMaxAffinitySeconds = 86400;  // as upstream
// As text; 50,000 endpoints have about one megabyte.
inline constexpr size_t kMaxServiceTableBytes = 64 * 1024 * 1024;

using ServiceTable = std::map<ServiceFrontend, ServiceBackend>;

std::string ToText(const ServiceTable& table);
// Invalid with the line that is not one.
Result<ServiceTable> ParseServiceTable(std::string_view text);

}  // namespace muster::agent
