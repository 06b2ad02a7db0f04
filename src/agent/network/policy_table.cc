#include "agent/network/policy_table.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"

namespace muster::agent {

namespace {

using Words = std::vector<std::string_view>;

constexpr std::string_view kNone = "-", kAnyProtocol = "any", kIn = "in", kOut = "out";

std::string_view TextOf(const std::optional<ServiceProtocol>& protocol) {
  return protocol ? ProtocolName(*protocol) : kAnyProtocol;
}

std::optional<uint16_t> PortOf(std::string_view text) {
  const auto port = ParseInt(text);
  if (!port || *port < 0 || *port > 65535) return std::nullopt;
  return static_cast<uint16_t>(*port);
}

bool IsName(std::string_view text, std::string_view prefix) {
  return text.starts_with(prefix) && text.size() <= kMaxPolicyNameBytes;
}

// allow PEERS RANGE PROTOCOL FIRST LAST EXCEPT...
std::optional<PolicyMatch> ParseMatch(const Words& words, const PolicyTable& table) {
  if (words.size() < 6) return std::nullopt;
  PolicyMatch match;
  if (words[1] != kNone) match.peers = words[1];
  if (!match.peers.empty() && !table.peers.contains(match.peers)) return std::nullopt;
  if (words[2] != kNone) {
    match.range = Ipv4Prefix::Parse(words[2]);
    if (!match.range) return std::nullopt;
  }
  if (words[3] != kAnyProtocol) {
    match.protocol = ParseProtocol(words[3]);
    if (!match.protocol) return std::nullopt;
  }
  const auto first = PortOf(words[4]), last = PortOf(words[5]);
  if (!first || !last || *first > *last || (*last != 0 && !match.protocol)) return std::nullopt;
  match.first_port = *first;
  match.last_port = *last;
  for (size_t i = 6; i < words.size(); ++i) {
    const auto except = Ipv4Prefix::Parse(words[i]);
    if (!except || !match.range) return std::nullopt;
    match.except.push_back(*except);
  }
  return match;
}

bool ParsePeers(const Words& words, PolicyTable& table) {
  if (words.size() < 2 || !IsName(words[1], kPolicyPeersPrefix)) return false;
  std::set<Ipv4>& peers = table.peers[std::string(words[1])];
  for (size_t i = 2; i < words.size(); ++i) {
    const auto address = Ipv4::Parse(words[i]);
    if (!address) return false;
    peers.insert(*address);
  }
  return true;
}

// `last`: the chain that lines "allow" belong to.
bool ParseChain(const Words& words, PolicyTable& table, PolicyChain*& last) {
  const bool both = words[0] == "both";
  if (words.size() < 3 || !IsName(words[1], kPolicyChainPrefix)) return false;
  if (words[2] != kIn && words[2] != kOut) return false;
  PolicyChain chain{.ingress = words[2] == kIn};
  for (size_t i = 3; i < words.size(); ++i) {
    if (!both || !table.chains.contains(std::string(words[i]))) return false;
    chain.both.emplace_back(words[i]);
  }
  last = &(table.chains[std::string(words[1])] = std::move(chain));
  return !both || !last->both.empty();
}

bool ParseAddress(const Words& words, PolicyTable& table) {
  if (words.size() != 3) return false;
  const auto address = Ipv4::Parse(words[1]);
  const auto chain = table.chains.find(std::string(words[2]));
  const bool ingress = words[0] == kIn;
  if (!address || chain == table.chains.end() || chain->second.ingress != ingress) return false;
  (ingress ? table.ingress : table.egress)[*address] = chain->first;
  return true;
}

}  // namespace

std::string ToText(const PolicyMatch& match) {
  std::string text = fmt::format("allow {} {} {} {} {}", match.peers.empty() ? kNone : match.peers,
                                 match.range ? match.range->ToString() : std::string(kNone),
                                 TextOf(match.protocol), match.first_port, match.last_port);
  for (const Ipv4Prefix& except : match.except) text += " " + except.ToString();
  return text;
}

std::string ToText(const PolicyTable& table) {
  std::string text;
  for (const auto& [name, peers] : table.peers) {
    text += "peers " + name;
    for (const Ipv4 peer : peers) text += " " + peer.ToString();
    text += '\n';
  }
  // Those that name others come after them.
  for (const bool both : {false, true}) {
    for (const auto& [name, chain] : table.chains) {
      if (chain.both.empty() == both) continue;
      text += fmt::format("{} {} {}", both ? "both" : "chain", name, chain.ingress ? kIn : kOut);
      for (const std::string& other : chain.both) text += " " + other;
      text += '\n';
      for (const PolicyMatch& match : chain.allow) text += ToText(match) + '\n';
    }
  }
  for (const auto& [address, chain] : table.ingress)
    text += fmt::format("{} {} {}\n", kIn, address.ToString(), chain);
  for (const auto& [address, chain] : table.egress)
    text += fmt::format("{} {} {}\n", kOut, address.ToString(), chain);
  return text;
}

Result<PolicyTable> ParsePolicyTable(std::string_view text) {
  PolicyTable table;
  PolicyChain* last = nullptr;
  for (const std::string_view line : SplitNonEmpty(text, '\n')) {
    const Words words = SplitNonEmpty(line, ' ');
    bool ok = false;
    if (words.empty()) {
    } else if (words[0] == "peers") {
      ok = ParsePeers(words, table);
    } else if (words[0] == "chain" || words[0] == "both") {
      ok = ParseChain(words, table, last);
    } else if (words[0] == "allow" && last != nullptr && last->both.empty()) {
      auto match = ParseMatch(words, table);
      ok = match.has_value();
      if (ok) last->allow.push_back(std::move(*match));
    } else if (words[0] == kIn || words[0] == kOut) {
      ok = ParseAddress(words, table);
    }
    if (!ok) {
      return Error(Reason::kInvalid, "network: not a line of a policy table: {:?}",
                   line.substr(0, 200));
    }
  }
  return table;
}

}  // namespace muster::agent
