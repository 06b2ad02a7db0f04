// src/agent/network/dns_table.h
//
// DnsTable: every name of the cluster domain at one moment, built from API objects. Pure data; the
// server (dns_server.h) answers from the latest one that was published.
//
// Life cycle: Build() makes an immutable snapshot; published and dropped as shared_ptr<const>.
// Thread:     any (immutable).
// Invariants: names are lower case without the final dot.
//             A local pod without readiness probes is found under its headless Services as soon as
//             it has an address, before any EndpointSlice says so: the gang's names resolve before
//             a rank starts.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "agent/network/ipv4.h"
#include "json/value.h"

namespace muster::agent {

struct DnsInput {
  std::vector<json::Value> services;         // v1 Service
  std::vector<json::Value> endpoint_slices;  // discovery.k8s.io/v1 EndpointSlice
  // v1 Pods of this node. status.podIP, labels, spec.hostname and spec.subdomain are read; give the
  // address that the agent has allocated in status.podIP, even when the API server does not know it
  // yet.
  std::vector<json::Value> local_pods;
  std::string cluster_domain = "cluster.local";
};

class DnsTable {
 public:
  struct Srv {
    uint16_t port = 0;
    std::string target;
    auto operator<=>(const Srv&) const = default;
  };
  struct Node {
    std::set<Ipv4> addresses;
    std::set<Srv> services;
    // Of a Service of type ExternalName: what it is called outside.
    std::string alias;
    // A headless Service: its pods may be about to come (see Awaits()).
    bool headless = false;
  };

  static std::shared_ptr<const DnsTable> Build(const DnsInput& input);

  const std::string& domain() const { return domain_; }
  bool InDomain(std::string_view name) const;  // at or below the cluster domain
  // nullptr: the name does not exist (and nothing below it). A Node without records: it exists,
  // without data.
  const Node* Find(std::string_view name) const;
  // Whether `name` has no address yet but may get one any moment: a headless Service without
  // addresses, or a pod's name below a headless Service.
  bool Awaits(std::string_view name) const;
  // The name of a pod or Service address, or "".
  std::string_view FindReverse(Ipv4 address) const;

 private:
  friend class DnsTableBuilder;
  std::string domain_;
  std::unordered_map<std::string, Node> nodes_;
  std::map<Ipv4, std::string> reverse_;
};

}  // namespace muster::agent
