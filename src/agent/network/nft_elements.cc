#include "agent/network/nft_elements.h"

#include <endian.h>
#include <fmt/core.h>
#include <netinet/in.h>

#include <algorithm>
#include <iterator>

#include "base/strings.h"

namespace muster::agent {

namespace {

constexpr std::string_view kRandom = "random", kClient = "client", kNode = "_node", kTo = "to";

// A word begins with the bytes that a register gets; the rest of it is zero.
uint32_t AddressWord(Ipv4 address) { return htobe32(address.value); }
uint32_t PortWord(uint16_t port) { return htole32(htobe16(port)); }
uint32_t ByteWord(uint8_t byte) { return htole32(byte); }

std::optional<ServiceProtocol> ProtocolOf(uint32_t word) {
  for (const auto protocol : {ServiceProtocol::kTcp, ServiceProtocol::kUdp, ServiceProtocol::kSctp})
    if (ByteWord(ProtocolNumber(protocol)) == word) return protocol;
  return std::nullopt;
}

// Its keys begin with the protocol.
bool HasNoAddress(NftSet set) {
  return set == NftSet::kNodePorts || set == NftSet::kNodeEndpoints || set == NftSet::kHostPorts ||
         set == NftSet::kNodeClientEndpoints || set == NftSet::kNodeAffinity ||
         set == NftSet::kNodeClients;
}

uint16_t PortOf(uint32_t word) { return be16toh(static_cast<uint16_t>(le32toh(word))); }

}  // namespace

std::string_view NameOf(NftSet set) {
  switch (set) {
    case NftSet::kServices:
      return "services";
    case NftSet::kNodePorts:
      return "nodeports";
    case NftSet::kEndpoints:
      return "endpoints";
    case NftSet::kNodeEndpoints:
      return "node_endpoints";
    case NftSet::kHostPorts:
      return "hostports";
    case NftSet::kHostIpPorts:
      return "host_ip_ports";
    case NftSet::kClientEndpoints:
      return "client_endpoints";
    case NftSet::kNodeClientEndpoints:
      return "node_client_endpoints";
    case NftSet::kAffinity:
      return "affinity";
    case NftSet::kNodeAffinity:
      return "node_affinity";
    case NftSet::kClients:
      return "clients";
    case NftSet::kNodeClients:
      return "node_clients";
  }
  return "";
}

size_t KeyWords(NftSet set) {
  switch (set) {
    case NftSet::kNodePorts:
    case NftSet::kHostPorts:
      return 2;
    case NftSet::kServices:
    case NftSet::kHostIpPorts:
    case NftSet::kNodeEndpoints:
    case NftSet::kNodeClientEndpoints:
    case NftSet::kNodeAffinity:
    case NftSet::kNodeClients:
      return 3;
    default:
      return 4;
  }
}

bool HasVerdict(NftSet set) {
  return set == NftSet::kServices || set == NftSet::kNodePorts || set == NftSet::kClientEndpoints ||
         set == NftSet::kNodeClientEndpoints;
}

bool HasData(NftSet set) {
  return !HasVerdict(set) && set != NftSet::kClients && set != NftSet::kNodeClients;
}

std::array<uint32_t, 2> DataOf(const ServiceEndpoint& endpoint) {
  return {AddressWord(endpoint.address), PortWord(endpoint.port)};
}

std::string ServiceChain::Name() const {
  if (IsFixed()) return std::string(kDropChain);
  const std::string_view node = node_port ? kNode : "";
  if (IsOfEndpoint())
    return fmt::format("{}_{}_{}_{}{}", kTo, to.address.ToString(), to.port, affinity_seconds,
                       node);
  if (affinity_seconds == 0) return fmt::format("{}_{}{}", kRandom, endpoints, node);
  return fmt::format("{}_{}_{}{}", kClient, endpoints, affinity_seconds, node);
}

std::optional<ServiceChain> ServiceChain::Parse(std::string_view name) {
  ServiceChain chain;
  if (name == kDropChain) return chain;
  std::string_view rest = name;
  chain.node_port = rest.ends_with(kNode);
  if (chain.node_port) rest.remove_suffix(kNode.size());
  const std::vector<std::string_view> parts = Split(rest, '_');
  const auto number = [&](size_t i, int64_t most) {
    const int64_t value = i < parts.size() ? ParseInt(parts[i]).value_or(0) : 0;
    return static_cast<uint32_t>(std::clamp<int64_t>(value, 0, most));
  };
  if (parts[0] == kTo && parts.size() > 1) {
    chain.to.address = Ipv4::Parse(parts[1]).value_or(Ipv4{});
    chain.to.port = static_cast<uint16_t>(number(2, UINT16_MAX));
    chain.affinity_seconds = number(3, kMaxAffinitySeconds);
  } else {
    chain.endpoints = number(1, kMaxEndpointsPerServicePort);
    chain.affinity_seconds = number(2, kMaxAffinitySeconds);
  }
  // Written otherwise it would be another chain.
  if (chain.IsFixed() || chain.Name() != name) return std::nullopt;
  return chain;
}

NftElements ElementsOf(const ServiceFrontend& frontend, const ServiceBackend& backend) {
  NftElements elements;
  if (backend.IsNone()) return elements;
  const bool node = frontend.IsNodePort();
  std::vector<uint32_t> key;
  if (!frontend.address.IsUnset()) key.push_back(AddressWord(frontend.address));
  key.push_back(ByteWord(ProtocolNumber(frontend.protocol)));
  key.push_back(PortWord(frontend.port));
  const auto add = [&](NftSet set) -> NftElement& {
    NftElement& element = elements.emplace_back();
    element.set = set;
    std::ranges::copy(key, element.key.begin());
    return element;
  };
  const auto count = static_cast<uint32_t>(backend.endpoints.size());
  if (frontend.host_port) {
    if (count == 0) return elements;
    add(frontend.address.IsUnset() ? NftSet::kHostPorts : NftSet::kHostIpPorts).data =
        DataOf(backend.endpoints[0]);
    return elements;
  }
  NftElement& entry = add(node ? NftSet::kNodePorts : NftSet::kServices);
  if (count == 0) return elements;
  entry.chain = {count, backend.affinity_seconds, node};
  for (uint32_t i = 0; i < count; ++i) {
    NftElement& element = add(node ? NftSet::kNodeEndpoints : NftSet::kEndpoints);
    element.key[key.size()] = i;
    element.data = DataOf(backend.endpoints[i]);
    if (backend.affinity_seconds == 0) continue;
    NftElement& client = add(node ? NftSet::kNodeClientEndpoints : NftSet::kClientEndpoints);
    client.key[key.size()] = i;
    client.chain = {0, backend.affinity_seconds, node, backend.endpoints[i]};
  }
  std::ranges::sort(elements);
  return elements;
}

std::optional<ServiceFrontend> FrontendOf(const NftElement& element) {
  const bool any_address = HasNoAddress(element.set);
  const bool host_port = element.set == NftSet::kHostPorts || element.set == NftSet::kHostIpPorts;
  const size_t first = any_address ? 0 : 1;  // the protocol
  const auto protocol = ProtocolOf(element.key[first]);
  if (!protocol) return std::nullopt;
  const uint32_t address = any_address ? 0 : element.key[first - 1];
  return ServiceFrontend{{be32toh(address)}, *protocol, PortOf(element.key[first + 1]), host_port};
}

ServiceEndpoint EndpointOf(const NftElement& element) {
  return {{be32toh(element.data[0])}, PortOf(element.data[1])};
}

NftChange Difference(const NftElements& have, const NftElements& want) {
  NftChange change;
  std::ranges::set_difference(have, want, std::back_inserter(change.remove));
  std::ranges::set_difference(want, have, std::back_inserter(change.add));
  return change;
}

}  // namespace muster::agent
