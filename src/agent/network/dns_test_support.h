// src/agent/network/dns_test_support.h
//
// For the DNS tests: questions as bytes, replies as text, and API objects in one line.

#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <vector>

#include "agent/network/dns_message.h"
#include "base/check.h"
#include "base/strings.h"
#include "json/value.h"

namespace muster::agent {

inline std::string Short(uint16_t value) {
  return {static_cast<char>(value >> 8), static_cast<char>(value & 0xFF)};
}

// An EDNS0 offer of `udp_bytes` when that is not 0.
inline std::string MakeQuery(std::string_view name, uint16_t type, uint16_t udp_bytes = 0,
                             uint16_t id = 0x1234) {
  std::string bytes =
      Short(id) + Short(0x0100) + Short(1) + Short(0) + Short(0) + Short(udp_bytes ? 1 : 0);
  bytes += EncodeDnsName(name) + Short(type) + Short(dns::kClassIn);
  if (udp_bytes != 0)
    bytes += std::string(1, '\0') + Short(dns::kTypeOpt) + Short(udp_bytes) + std::string(6, '\0');
  return bytes;
}

inline uint16_t ShortAt(std::string_view bytes, size_t at) {
  return static_cast<uint16_t>(static_cast<uint8_t>(bytes[at]) << 8 |
                               static_cast<uint8_t>(bytes[at + 1]));
}

inline std::string NameAt(std::string_view bytes, size_t& at) {
  std::string name;
  while (const auto length = static_cast<uint8_t>(bytes[at])) {
    if ((length & 0xC0) != 0) {
      size_t target = ShortAt(bytes, at) & 0x3FFF;
      at += 2;
      return name + (name.empty() ? "" : ".") + NameAt(bytes, target);
    }
    if (!name.empty()) name += '.';
    name += bytes.substr(at + 1, length);
    at += 1 + length;
  }
  ++at;
  return name;
}

// "NOERROR A 10.42.0.5, A 10.42.0.6", "NXDOMAIN SOA cluster.local", "NOERROR truncated": what a
// client understands. A record of another name than the first one's says whose it is.
inline std::string ReadReply(std::string_view bytes) {
  if (bytes.size() < 12) return "nothing";
  constexpr const char* kCodes[] = {"NOERROR",  "FORMERR", "SERVFAIL",
                                    "NXDOMAIN", "NOTIMP",  "REFUSED"};
  std::string text = kCodes[ShortAt(bytes, 2) & 0xF];
  if ((ShortAt(bytes, 2) & 0x0200) != 0) text += " truncated";
  size_t at = 12;
  for (int i = 0; i < ShortAt(bytes, 4); ++i) {
    NameAt(bytes, at);
    at += 4;
  }
  std::string first_owner;
  const int records = ShortAt(bytes, 6) + ShortAt(bytes, 8);
  for (int i = 0; i < records; ++i) {
    const std::string owner = NameAt(bytes, at);
    if (i == 0) first_owner = owner;
    const uint16_t type = ShortAt(bytes, at);
    const uint16_t size = ShortAt(bytes, at + 8);
    size_t data = at + 10;
    at = data + size;
    text += i == 0 ? " " : ", ";
    if (owner != first_owner) text += owner + " ";
    if (type == dns::kTypeA) {
      text += fmt::format(
          "A {}", Ipv4{static_cast<uint32_t>(ShortAt(bytes, data)) << 16 | ShortAt(bytes, data + 2)}
                      .ToString());
    } else if (type == dns::kTypeSrv) {
      size_t target = data + 6;
      text += fmt::format("SRV {} {}", ShortAt(bytes, data + 4), NameAt(bytes, target));
    } else if (type == dns::kTypePtr || type == dns::kTypeCname) {
      text += (type == dns::kTypePtr ? "PTR " : "CNAME ") + NameAt(bytes, data);
    } else {
      text += type == dns::kTypeSoa ? "SOA " + owner : fmt::format("type {}", type);
    }
  }
  CHECK(at <= bytes.size());
  return text;
}

inline json::Value ServiceObject(std::string_view name, json::Value spec) {
  return json::Obj(
      {{"metadata", json::Obj({{"name", name}, {"namespace", "ml"}})}, {"spec", std::move(spec)}});
}

inline json::Value HeadlessService(std::string_view name, bool publish_not_ready = false) {
  return ServiceObject(
      name, json::Obj({{"clusterIP", "None"},
                       {"selector", json::Obj({{"job", name}})},
                       {"publishNotReadyAddresses", publish_not_ready},
                       {"ports", json::List({json::Obj({{"name", "rdzv"}, {"port", 23456}})})}}));
}

inline json::Value EndpointObject(std::string_view address, bool ready,
                                  std::string_view hostname = "") {
  json::Value endpoint = json::Obj(
      {{"addresses", json::List({address})}, {"conditions", json::Obj({{"ready", ready}})}});
  return hostname.empty() ? endpoint : endpoint.Set("hostname", hostname);
}

inline json::Value SliceObject(std::string_view service, json::Value endpoints) {
  return json::Obj(
      {{"metadata", json::Obj({{"name", fmt::format("{}-x", service)},
                               {"namespace", "ml"},
                               {"labels", json::Obj({{"kubernetes.io/service-name", service}})}})},
       {"addressType", "IPv4"},
       {"endpoints", std::move(endpoints)},
       {"ports",
        json::List({json::Obj({{"name", "rdzv"}, {"port", 23456}, {"protocol", "TCP"}})})}});
}

inline json::Value PodObject(std::string_view job, std::string_view address,
                             json::Value spec = json::Obj()) {
  return json::Obj({{"metadata", json::Obj({{"name", fmt::format("{}-0", job)},
                                            {"namespace", "ml"},
                                            {"labels", json::Obj({{"job", job}})}})},
                    {"spec", std::move(spec)},
                    {"status", json::Obj({{"phase", "Pending"}, {"podIP", address}})}});
}

}  // namespace muster::agent
