#include "agent/network/service_rules.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace muster::agent {

namespace {

using ServiceKey = std::pair<std::string, std::string>;  // namespace, name

std::optional<ServiceProtocol> ParseProtocol(std::string_view text) {
  if (text.empty() || text == "TCP") return ServiceProtocol::kTcp;
  if (text == "UDP") return ServiceProtocol::kUdp;
  if (text == "SCTP") return ServiceProtocol::kSctp;
  return std::nullopt;
}

std::string_view ProtocolName(ServiceProtocol protocol) {
  switch (protocol) {
    case ServiceProtocol::kUdp:
      return "udp";
    case ServiceProtocol::kSctp:
      return "sctp";
    default:
      return "tcp";
  }
}

// A missing condition counts as ready, as the API says.
bool IsReady(const json::Value& endpoint) { return endpoint["conditions"]["ready"].AsBool(true); }

// Ready endpoints by the name of the Service's port.
std::map<std::string, std::set<ServiceEndpoint>> EndpointsByPort(
    const std::vector<const json::Value*>& slices) {
  std::map<std::string, std::set<ServiceEndpoint>> by_port;
  for (const json::Value* slice : slices) {
    for (const json::Value& port : (*slice)["ports"].items()) {
      const std::optional<uint16_t> number = ParsePort(port["port"]);
      if (!number) continue;
      std::set<ServiceEndpoint>& endpoints = by_port[port["name"].Str()];
      for (const json::Value& endpoint : (*slice)["endpoints"].items()) {
        if (!IsReady(endpoint)) continue;
        const std::optional<Ipv4> address = Ipv4::Parse(endpoint["addresses"].At(0).AsString());
        if (address) endpoints.insert({*address, *number});
      }
    }
  }
  return by_port;
}

// Every address of a Service, usually one.
std::vector<Ipv4> ClusterIps(const json::Value& service) {
  std::vector<Ipv4> addresses;
  const auto add = [&](const json::Value& text) {
    const std::optional<Ipv4> address = Ipv4::Parse(text.AsString());
    if (address && std::ranges::find(addresses, *address) == addresses.end())
      addresses.push_back(*address);
  };
  add(service["spec"]["clusterIP"]);
  for (const json::Value& text : service["spec"]["clusterIPs"].items()) add(text);
  return addresses;
}

std::string AddElements(std::string_view where, const std::set<std::string>& elements) {
  if (elements.empty()) return {};
  std::string text = fmt::format("add element ip {} {} {{\n", kNftTable, where);
  for (const std::string& element : elements) {
    text += "  ";
    text += element;
    text += ",\n";
  }
  return text + "}\n";
}

}  // namespace

std::optional<uint16_t> ParsePort(const json::Value& value) {
  const int64_t port = value.AsInt();
  if (port < 1 || port > 65535) return std::nullopt;
  return static_cast<uint16_t>(port);
}

std::vector<ServicePort> ServicePorts(const std::vector<json::Value>& services,
                                      const std::vector<json::Value>& endpoint_slices) {
  std::map<ServiceKey, std::vector<const json::Value*>> slices;
  for (const json::Value& slice : endpoint_slices) {
    if (slice["addressType"].AsString("IPv4") != "IPv4") continue;
    const std::string service = slice["metadata"]["labels"]["kubernetes.io/service-name"].Str();
    if (!service.empty()) slices[{slice["metadata"]["namespace"].Str(), service}].push_back(&slice);
  }
  std::vector<ServicePort> ports;
  for (const json::Value& service : services) {
    const auto own =
        slices.find({service["metadata"]["namespace"].Str(), service["metadata"]["name"].Str()});
    const auto endpoints =
        own == slices.end() ? decltype(EndpointsByPort({}))() : EndpointsByPort(own->second);
    for (const Ipv4 address : ClusterIps(service)) {
      for (const json::Value& port : service["spec"]["ports"].items()) {
        const std::optional<uint16_t> number = ParsePort(port["port"]);
        const std::optional<ServiceProtocol> protocol = ParseProtocol(port["protocol"].AsString());
        if (!number || !protocol) continue;
        ServicePort& entry = ports.emplace_back();
        entry.cluster_ip = address;
        entry.protocol = *protocol;
        entry.port = *number;
        entry.client_affinity = service["spec"]["sessionAffinity"].AsString() == "ClientIP";
        const auto found = endpoints.find(port["name"].Str());
        if (found != endpoints.end())
          entry.endpoints.assign(found->second.begin(), found->second.end());
      }
    }
  }
  std::ranges::sort(ports);
  return ports;
}

std::string ServiceRules(const NodeNetworkConfig& config, const std::vector<ServicePort>& ports) {
  std::set<std::pair<size_t, bool>> chains;  // number of endpoints, by client address or at random
  std::set<std::string> services;
  std::set<std::string> endpoints;
  std::set<std::string> hairpin;
  const ServicePort* last = nullptr;
  for (const ServicePort& port : ports) {
    // Two Services with one address would be a conflict in the map; the API server prevents it.
    const bool repeated = last != nullptr && last->cluster_ip == port.cluster_ip &&
                          last->protocol == port.protocol && last->port == port.port;
    last = &port;
    if (port.endpoints.empty() || repeated) continue;
    const size_t count = std::min(port.endpoints.size(), kMaxEndpointsPerServicePort);
    const std::string key = fmt::format("{} . {} . {}", port.cluster_ip.ToString(),
                                        ProtocolName(port.protocol), port.port);
    chains.insert({count, port.client_affinity});
    services.insert(
        fmt::format("{} : goto {}_{}", key, port.client_affinity ? "client" : "random", count));
    for (size_t i = 0; i < count; ++i) {
      const std::string address = port.endpoints[i].address.ToString();
      endpoints.insert(fmt::format("{} . {} : {} . {}", key, i, address, port.endpoints[i].port));
      if (config.node_range.Contains(port.endpoints[i].address))
        hairpin.insert(address + " . " + address);
    }
  }
  std::string text = HostRules(config);
  text += fmt::format("table ip {} {{\n", kNftTable);
  for (const auto& [count, by_client] : chains) {
    text += fmt::format(
        "  chain {0}_{1} {{\n    dnat ip to ip daddr . ip protocol . th dport . {2} mod {1} map "
        "@endpoints\n  }}\n",
        by_client ? "client" : "random", count, by_client ? "jhash ip saddr" : "numgen random");
  }
  text += "}\n";
  text += AddElements("endpoints", endpoints);
  text += AddElements("services", services);
  text += AddElements("hairpin", hairpin);
  return text;
}

}  // namespace muster::agent
