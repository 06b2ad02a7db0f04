#include "agent/network/service_table.h"

#include <fmt/core.h>
#include <netinet/in.h>

#include <iterator>

#include "base/strings.h"

namespace muster::agent {

namespace {

constexpr std::string_view kDrop = "drop", kRandom = "random", kByClient = "client/",
                           kHost = "host";

std::optional<uint16_t> ParsePort(std::string_view text) {
  const auto port = ParseInt(text);
  if (!port || *port < 1 || *port > 65535) return std::nullopt;
  return static_cast<uint16_t>(*port);
}

std::optional<ServiceEndpoint> ParseEndpoint(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == text.npos) return std::nullopt;
  const auto address = Ipv4::Parse(text.substr(0, colon));
  const auto port = ParsePort(text.substr(colon + 1));
  if (!address || !port) return std::nullopt;
  return ServiceEndpoint{*address, *port};
}

// Of "client/10800"; 0 of "random" and "host".
std::optional<uint32_t> ParseMode(std::string_view text) {
  if (text == kRandom || text == kHost) return 0;
  if (!text.starts_with(kByClient)) return std::nullopt;
  const auto seconds = ParseInt(text.substr(kByClient.size()));
  if (!seconds || *seconds < 1 || *seconds > kMaxAffinitySeconds) return std::nullopt;
  return static_cast<uint32_t>(*seconds);
}

bool ParseLine(std::string_view line, ServiceTable& table) {
  const std::vector<std::string_view> words = Split(line, ' ');
  if (words.size() < 4) return false;
  const auto address = Ipv4::Parse(words[0]);
  const auto protocol = ParseProtocol(words[1]);
  const auto port = ParsePort(words[2]);
  const bool host_port = words[3] == kHost;
  const auto affinity_seconds = ParseMode(words[3]);
  if (!address || !protocol || !port || !affinity_seconds) return false;
  ServiceBackend& backend = table[{*address, *protocol, *port, host_port}];
  backend = {.affinity_seconds = *affinity_seconds};
  for (size_t i = 4; i < words.size(); ++i) {
    if (words[i] == kDrop) {
      backend.drop = true;
      continue;
    }
    const auto endpoint = ParseEndpoint(words[i]);
    if (!endpoint || backend.endpoints.size() == (host_port ? 1 : kMaxEndpointsPerServicePort))
      return false;
    backend.endpoints.push_back(*endpoint);
  }
  return true;
}

}  // namespace

std::optional<ServiceProtocol> ParseProtocol(std::string_view text) {
  if (text.empty() || text == "TCP") return ServiceProtocol::kTcp;
  if (text == "UDP") return ServiceProtocol::kUdp;
  if (text == "SCTP") return ServiceProtocol::kSctp;
  return std::nullopt;
}

std::string_view ProtocolName(ServiceProtocol protocol) {
  switch (protocol) {
    case ServiceProtocol::kUdp:
      return "UDP";
    case ServiceProtocol::kSctp:
      return "SCTP";
    default:
      return "TCP";
  }
}

uint8_t ProtocolNumber(ServiceProtocol protocol) {
  switch (protocol) {
    case ServiceProtocol::kUdp:
      return IPPROTO_UDP;
    case ServiceProtocol::kSctp:
      return IPPROTO_SCTP;
    default:
      return IPPROTO_TCP;
  }
}

std::string ToText(const ServiceTable& table) {
  std::string text;
  for (const auto& [frontend, backend] : table) {
    std::string mode(frontend.host_port ? kHost : kRandom);
    if (backend.affinity_seconds > 0)
      mode = fmt::format("{}{}", kByClient, backend.affinity_seconds);
    text += fmt::format("{} {} {} {}", frontend.address.ToString(), ProtocolName(frontend.protocol),
                        frontend.port, mode);
    if (backend.drop) text += fmt::format(" {}", kDrop);
    for (const ServiceEndpoint& endpoint : backend.endpoints)
      text += fmt::format(" {}:{}", endpoint.address.ToString(), endpoint.port);
    text += '\n';
  }
  return text;
}

Result<ServiceTable> ParseServiceTable(std::string_view text) {
  ServiceTable table;
  for (const std::string_view line : SplitNonEmpty(text, '\n')) {
    if (!ParseLine(line, table))
      return Error(Reason::kInvalid, "network: not a line of a service table: {:?}",
                   line.substr(0, 200));
  }
  return table;
}

}  // namespace muster::agent
