#include "agent/network/service_planner.h"

#include <algorithm>
#include <set>

namespace muster::agent {

namespace {

constexpr uint32_t kDefaultAffinitySeconds = 10800;

// The endpoints of one port of a Service, by what may be done with them.
struct PortEndpoints {
  std::set<ServiceEndpoint> ready, local_ready, serving, local_serving;
  // Of the ready ones, those with a hint for this node or for its zone, and whether each of them
  // has hints of that sort.
  std::set<ServiceEndpoint> for_node, for_zone;
  bool all_name_nodes = true, all_name_zones = true;

  // The ready ones for clients that may be led to any node.
  const std::set<ServiceEndpoint>& ReadyByHints() const {
    if (all_name_nodes && !for_node.empty()) return for_node;
    if (all_name_zones && !for_zone.empty()) return for_zone;
    return ready;
  }
};

bool Names(const json::Value& hints, std::string_view name) {
  return std::ranges::any_of(
      hints.items(), [&](const json::Value& hint) { return hint["name"].AsString() == name; });
}

void NoteHints(const json::Value& hints, const NodePlace& node, const ServiceEndpoint& target,
               PortEndpoints& out) {
  if (hints["forNodes"].empty()) out.all_name_nodes = false;
  if (hints["forZones"].empty()) out.all_name_zones = false;
  if (Names(hints["forNodes"], node.name)) out.for_node.insert(target);
  if (Names(hints["forZones"], node.zone)) out.for_zone.insert(target);
}

// A missing condition counts as ready and serving, as the API says.
void AddEndpoint(const json::Value& endpoint, uint16_t port, const NodePlace& node,
                 PortEndpoints& out) {
  const auto address = Ipv4::Parse(endpoint["addresses"].At(0).AsString());
  if (!address) return;
  const json::Value& conditions = endpoint["conditions"];
  const bool local = endpoint["nodeName"].AsString() == node.name;
  const ServiceEndpoint target{*address, port};
  if (conditions["ready"].AsBool(true)) {
    out.ready.insert(target);
    if (local) out.local_ready.insert(target);
    NoteHints(endpoint["hints"], node, target, out);
  } else if (conditions["terminating"].AsBool() && conditions["serving"].AsBool(true)) {
    out.serving.insert(target);
    if (local) out.local_serving.insert(target);
  }
}

std::map<std::string, PortEndpoints> EndpointsByPort(const std::vector<json::Value>& slices,
                                                     const NodePlace& node) {
  std::map<std::string, PortEndpoints> by_port;
  for (const json::Value& slice : slices) {
    if (slice["addressType"].AsString("IPv4") != "IPv4") continue;
    for (const json::Value& port : slice["ports"].items()) {
      const std::optional<uint16_t> number = ParsePort(port["port"]);
      if (!number) continue;
      PortEndpoints& endpoints = by_port[port["name"].Str()];
      for (const json::Value& endpoint : slice["endpoints"].items())
        AddEndpoint(endpoint, *number, node, endpoints);
    }
  }
  return by_port;
}

// 0: a client may be led anywhere.
uint32_t AffinitySeconds(const json::Value& spec) {
  if (spec["sessionAffinity"].AsString() != "ClientIP") return 0;
  const int64_t seconds = spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"].AsInt();
  if (seconds < 1) return kDefaultAffinitySeconds;
  return static_cast<uint32_t>(std::min<int64_t>(seconds, kMaxAffinitySeconds));
}

ServiceBackend Choose(const PortEndpoints& endpoints, bool local, uint32_t affinity_seconds) {
  ServiceBackend backend{.affinity_seconds = affinity_seconds};
  const std::set<ServiceEndpoint>& ready = local ? endpoints.local_ready : endpoints.ReadyByHints();
  const std::set<ServiceEndpoint>& serving = local ? endpoints.local_serving : endpoints.serving;
  for (const ServiceEndpoint& endpoint : ready.empty() ? serving : ready) {
    if (backend.endpoints.size() == kMaxEndpointsPerServicePort) break;
    backend.endpoints.push_back(endpoint);
  }
  backend.drop =
      backend.endpoints.empty() && !(endpoints.ready.empty() && endpoints.serving.empty());
  return backend;
}

// Addresses that are no node's: inside the cluster, or outside.
std::set<Ipv4> Addresses(const json::Value& first, const json::Value& more) {
  std::set<Ipv4> addresses;
  if (const auto address = Ipv4::Parse(first.AsString())) addresses.insert(*address);
  for (const json::Value& text : more.items()) {
    if (const auto address = Ipv4::Parse(text.AsString())) addresses.insert(*address);
  }
  addresses.erase(Ipv4{});
  return addresses;
}

}  // namespace

std::optional<uint16_t> ParsePort(const json::Value& value) {
  const int64_t port = value.AsInt();
  if (port < 1 || port > 65535) return std::nullopt;
  return static_cast<uint16_t>(port);
}

ServiceTable PlanService(const json::Value& service, const std::vector<json::Value>& slices,
                         const NodePlace& node) {
  ServiceTable rows;
  const json::Value& spec = service["spec"];
  if (spec["type"].AsString() == "ExternalName") return rows;
  const std::set<Ipv4> inside = Addresses(spec["clusterIP"], spec["clusterIPs"]);
  if (inside.empty()) return rows;  // headless
  const std::set<Ipv4> outside = Addresses({}, spec["externalIPs"]);
  const bool inside_local = spec["internalTrafficPolicy"].AsString() == "Local";
  const bool outside_local = spec["externalTrafficPolicy"].AsString() == "Local";
  const uint32_t affinity = AffinitySeconds(spec);
  const auto endpoints = EndpointsByPort(slices, node);
  const auto add = [&](Ipv4 address, ServiceProtocol protocol, uint16_t port,
                       const ServiceBackend& backend) {
    if (!backend.IsNone()) rows.try_emplace({address, protocol, port}, backend);
  };
  for (const json::Value& port : spec["ports"].items()) {
    const std::optional<uint16_t> number = ParsePort(port["port"]);
    const std::optional<ServiceProtocol> protocol = ParseProtocol(port["protocol"].AsString());
    const auto found = endpoints.find(port["name"].Str());
    if (!number || !protocol || found == endpoints.end()) continue;
    const ServiceBackend of_inside = Choose(found->second, inside_local, affinity);
    const ServiceBackend of_outside = Choose(found->second, outside_local, affinity);
    for (const Ipv4 address : inside) add(address, *protocol, *number, of_inside);
    for (const Ipv4 address : outside) add(address, *protocol, *number, of_outside);
    if (const auto node_port = ParsePort(port["nodePort"]))
      add(Ipv4{}, *protocol, *node_port, of_outside);
  }
  return rows;
}

size_t CountLocalEndpoints(const std::vector<json::Value>& slices, std::string_view node_name) {
  std::set<Ipv4> addresses;
  for (const auto& [port, endpoints] : EndpointsByPort(slices, {std::string(node_name)}))
    for (const ServiceEndpoint& endpoint : endpoints.local_ready)
      addresses.insert(endpoint.address);
  return addresses.size();
}

void ServiceRows::Set(const Key& service, ServiceTable rows) {
  std::vector<ServiceFrontend>& own = frontends_[service];
  std::map<ServiceFrontend, ServiceBackend> before;
  for (const ServiceFrontend& frontend : own) before.emplace(frontend, Effective(frontend));
  for (const auto& [frontend, backend] : rows) before.emplace(frontend, Effective(frontend));
  for (const ServiceFrontend& frontend : own) claims_[frontend].erase(service);
  own.clear();
  for (auto& [frontend, backend] : rows) {
    own.push_back(frontend);
    claims_[frontend][service] = std::move(backend);
  }
  if (own.empty()) frontends_.erase(service);
  for (const auto& [frontend, backend] : before) {
    ServiceBackend now = Effective(frontend);
    if (now.IsNone()) claims_.erase(frontend);
    if (now != backend) changes_[frontend] = std::move(now);
  }
}

ServiceBackend ServiceRows::Effective(const ServiceFrontend& frontend) const {
  const auto claims = claims_.find(frontend);
  if (claims == claims_.end() || claims->second.empty()) return {};
  return claims->second.begin()->second;
}

ServiceTable ServiceRows::TakeChanges() { return std::exchange(changes_, {}); }

ServiceTable ServiceRows::Whole() const {
  ServiceTable table;
  for (const auto& [frontend, claims] : claims_) table.emplace(frontend, claims.begin()->second);
  return table;
}

}  // namespace muster::agent
