// src/agent/network/service_planner.h
//
// What one Service means for the packet filter of a node: a pure function from the Service and its
// EndpointSlices to rows of the ServiceTable, by kube-proxy's rules.
//
// Which endpoints a frontend leads to: the ready ones; where none is ready, those that end but
// still serve. With a traffic policy Local only those of this node count; if there is none here but
// somewhere, packets are dropped. Pods are "inside" at the cluster's addresses, and all else
// (NodePorts, external addresses) follows externalTrafficPolicy.
//
// With a traffic policy Cluster, of the ready ones those count whose hints name this node, else
// those whose hints name its zone; but only where every ready endpoint has hints of that sort and
// one of them is for here. So nobody is without endpoints because of hints.
//
// ServiceRows keeps the rows of all Services, so that one change costs what it changes.
//
// Thread:     any (pure); ServiceRows one at a time.
// Invariants: the same objects give the same rows; what is malformed is left out.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/network/service_table.h"
#include "json/value.h"

namespace muster::agent {

// 1 to 65535, else nullopt.
std::optional<uint16_t> ParsePort(const json::Value& value);

// For which node is planned.
struct NodePlace {
  std::string name;
  std::string zone = {};  // its label topology.kubernetes.io/zone; "" if it has none
};

// `service` is a v1 Service, `slices` are its discovery.k8s.io/v1 EndpointSlices. At most
// kMaxEndpointsPerServicePort endpoints of each port are used. Rows without endpoints are left out.
ServiceTable PlanService(const json::Value& service, const std::vector<json::Value>& slices,
                         const NodePlace& node);

// How many ready endpoints of the Service are on this node, by address.
size_t CountLocalEndpoints(const std::vector<json::Value>& slices, std::string_view node_name);

class ServiceRows {
 public:
  using Key = std::pair<std::string, std::string>;  // namespace, name

  // The Service has these rows now (none: it is gone). What this changes is in TakeChanges().
  void Set(const Key& service, ServiceTable rows);
  // Every frontend that leads elsewhere than at the last call; IsNone() is one that is gone.
  ServiceTable TakeChanges();
  // Everything.
  ServiceTable Whole() const;

 private:
  // Who wants a frontend. The API server prevents two; the first by name has it.
  using Claims = std::map<Key, ServiceBackend>;
  ServiceBackend Effective(const ServiceFrontend& frontend) const;

  std::map<Key, std::vector<ServiceFrontend>> frontends_;
  std::map<ServiceFrontend, Claims> claims_;
  ServiceTable changes_;
};

}  // namespace muster::agent
