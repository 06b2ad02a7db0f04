// src/agent/network/policy_table.h
//
// PolicyTable: which connections the pods of a node may have, as its packet filter has to know it.
// The planner (policy_planner.h) makes it of API objects; the spawner puts it into the kernel
// (policy_dataplane.h). Between the two it travels as text, one thing a line:
//
//   peers NAME 10.42.0.2 10.42.0.3          addresses of pods
//   chain NAME in                           what may come in, or go "out", one line each:
//   allow NAME - TCP 80 90                    from these peers, at these ports
//   allow - 10.0.0.0/8 any 0 0 10.1.0.0/16    from this range without that one
//   both NAME in CHAIN CHAIN                what each of these allows (pods of one address)
//   in 10.42.0.2 CHAIN                      the pod with this address may get what the chain allows
//   out 10.42.0.2 CHAIN
//
// Thread:     any (values, pure functions).
// Invariants: an address without a line "in" or "out" is not restricted in that direction.

#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/network/ipv4.h"
#include "agent/network/service_table.h"
#include "base/status.h"

namespace muster::agent {

// What all names begin with; the packet filter has other things beside them.
inline constexpr std::string_view kPolicyPeersPrefix = "policy_peers_";
inline constexpr std::string_view kPolicyChainPrefix = "policy_chain_";
inline constexpr size_t kMaxPolicyNameBytes = 64;
// As text; 1,000,000 peers have about 12 megabytes.
inline constexpr size_t kMaxPolicyTableBytes = 64 * 1024 * 1024;

// One way in which a connection passes: all that is given must hold.
struct PolicyMatch {
  std::string peers = {};                   // the other end is in the set of this name
  std::optional<Ipv4Prefix> range = {};     // and in this range
  std::vector<Ipv4Prefix> except = {};      // and in none of these
  std::optional<ServiceProtocol> protocol;  // none: also what has no ports
  uint16_t first_port = 0, last_port = 0;   // of the end that is connected to; 0: any

  auto operator<=>(const PolicyMatch&) const = default;
};

struct PolicyChain {
  bool ingress = false;
  std::vector<PolicyMatch> allow = {};  // one of them, unless `both` is given
  std::vector<std::string> both = {};   // chains that must allow it, all of them

  auto operator<=>(const PolicyChain&) const = default;
};

struct PolicyTable {
  std::map<std::string, std::set<Ipv4>> peers;
  std::map<std::string, PolicyChain> chains;
  std::map<Ipv4, std::string> ingress, egress;  // restricted addresses and their chains

  bool empty() const { return ingress.empty() && egress.empty(); }
  bool operator==(const PolicyTable&) const = default;
};

std::string ToText(const PolicyMatch& match);
std::string ToText(const PolicyTable& table);
// Invalid with the line that is not one, or that names what is not there.
Result<PolicyTable> ParsePolicyTable(std::string_view text);

}  // namespace muster::agent
