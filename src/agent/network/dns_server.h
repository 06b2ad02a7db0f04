// src/agent/network/dns_server.h
//
// DnsServer: answers the pods' DNS questions, UDP and TCP. Names of the cluster domain come from
// the published DnsTable; everything else goes to the host's resolvers.
//
// Life cycle: Start() binds and listens, or says why it cannot; Publish() as often as the table
//             changes; destruction closes the sockets and joins the thread.
// Thread:     an I/O thread of its own, so that a busy control plane never delays a lookup.
//             Publish() from any thread.
// Invariants: at most kMaxForwardsInFlight questions are out; a forwarded question is answered
//             within kForwardTimeout (SERVFAIL); without resolvers nothing is sent anywhere. A
//             lookup of a headless Service that exists but has no address yet is held up to `hold`
//             and answered by the first table that has one: no rank starts against a negative
//             answer. Before the first table every question about the cluster domain is held.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/network/dns_forwarder.h"
#include "agent/network/dns_table.h"
#include "agent/network/ipv4.h"
#include "agent/runtime/unique_fd.h"
#include "base/status.h"
#include "base/time.h"

namespace muster::agent {

struct DnsServerOptions {
  DnsEndpoint listen;  // UDP and TCP; port 0 picks one (see DnsServer::port())
  // UpstreamsFrom(resolv.conf text). Empty: what is not ours is refused.
  std::vector<DnsEndpoint> upstreams;
  // Reverse lookups in these never go outside.
  Ipv4Prefix service_range{{0x0A2B0000}, 16};
  Ipv4Prefix pod_range{{0x0A2A0000}, 16};
  Duration hold = seconds(4);  // below the 5 s after which glibc asks again
};

inline constexpr size_t kMaxHeldQuestions = 4096;
inline constexpr size_t kMaxDnsTcpConnections = 256;
inline constexpr Duration kDnsTcpIdleTimeout = seconds(10);

// The IPv4 nameservers of a resolv.conf, at most three, without `self`.
std::vector<DnsEndpoint> UpstreamsFrom(std::string_view resolv_conf, Ipv4 self);

// Both on the same address and port. `free`: the address may come later (IP_FREEBIND).
struct DnsSockets {
  UniqueFd udp, tcp;
};
Result<DnsSockets> BindDns(const DnsEndpoint& where, bool free = false);

class DnsServer {
 public:
  // On options.listen.
  static Result<std::unique_ptr<DnsServer>> Start(const DnsServerOptions& options);
  static Result<std::unique_ptr<DnsServer>> Start(const DnsServerOptions& options,
                                                  DnsSockets sockets);
  virtual ~DnsServer() = default;
  virtual void Publish(std::shared_ptr<const DnsTable> table) = 0;
  virtual uint16_t port() const = 0;
};

}  // namespace muster::agent
