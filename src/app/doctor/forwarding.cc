// Whether packets of pods get through the forwarding rules of others, by the rules' text.

#include <map>
#include <set>

#include <fmt/core.h>

#include "agent/network/host_network.h"
#include "app/doctor/checks.h"
#include "base/strings.h"

namespace muster::app {
namespace {

struct Chain {
  bool forwards = false;  // a base chain of the hook
  bool drops = false;     // its policy, or its last rule
  std::vector<std::string> rules;
};
using Chains = std::map<std::string, Chain, std::less<>>;

// "counter packets 5 bytes 300" is no condition.
std::string WithoutCounters(std::string_view rule) {
  std::string out;
  const std::vector<std::string_view> words = SplitNonEmpty(rule, ' ');
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "counter") {
      if (i + 4 < words.size() && words[i + 1] == "packets") i += 4;
      continue;
    }
    out += (out.empty() ? "" : " ") + std::string(words[i]);
  }
  return out;
}

bool IsFinal(std::string_view rule) { return rule == "drop" || rule.starts_with("reject"); }

// Whether a packet that has `match` ("iifname \"muster0\"") is accepted here, or where this jumps.
bool Accepts(const Chains& chains, std::string_view name, const std::string& match, int depth = 0) {
  const auto chain = chains.find(name);
  if (chain == chains.end() || depth > 8) return false;
  for (const std::string& rule : chain->second.rules) {
    if (rule == "accept" || rule == match + " accept") return true;
    if (IsFinal(rule)) return false;
    const std::string_view jump = "jump ";
    if (rule.starts_with(jump) && Accepts(chains, rule.substr(jump.size()), match, depth + 1))
      return true;
  }
  return false;
}

void AddDropping(const std::string& table, const Chains& chains, std::vector<std::string>& out) {
  const std::string bridge = fmt::format("\"{}\"", agent::NodeNetworkConfig().bridge);
  for (const auto& [name, chain] : chains) {
    const bool ends = chain.drops || (!chain.rules.empty() && IsFinal(chain.rules.back()));
    if (!chain.forwards || !ends) continue;
    if (Accepts(chains, name, "iifname " + bridge) && Accepts(chains, name, "oifname " + bridge))
      continue;
    out.push_back(fmt::format("table {}, chain {}", table, name));
  }
}

}  // namespace

std::vector<std::string> DroppingChains(std::string_view nft_rules) {
  std::vector<std::string> out;
  std::string table;
  Chains chains;
  Chain* chain = nullptr;
  for (const std::string_view raw : SplitNonEmpty(nft_rules, '\n')) {
    const std::string_view line = Trim(raw);
    const std::vector<std::string_view> words = SplitNonEmpty(line, ' ');
    if (raw.starts_with("table ") && words.size() >= 3) {
      AddDropping(table, chains, out);
      chains.clear();
      table = fmt::format("{} {}", words[1], words[2]);
    } else if (!table.starts_with("ip ") && !table.starts_with("inet ")) {
      continue;
    } else if (line.starts_with("chain ") && words.size() >= 2) {
      chain = &chains[std::string(words[1])];
    } else if (line == "}") {
      chain = nullptr;
    } else if (chain != nullptr && line.starts_with("type ")) {
      chain->forwards = line.contains("hook forward ");
      chain->drops = line.contains("policy drop;");
    } else if (chain != nullptr) {
      chain->rules.push_back(WithoutCounters(line));
    }
  }
  AddDropping(table, chains, out);
  return out;
}

bool LegacyDrops(std::string_view iptables_rules) {
  const std::string bridge = agent::NodeNetworkConfig().bridge;
  bool drops = false;
  std::set<std::string, std::less<>> lines;
  for (const std::string_view line : SplitNonEmpty(iptables_rules, '\n')) {
    drops = drops || line == "-P FORWARD DROP";
    lines.emplace(line);
  }
  const auto accepts = [&](const char* direction) {
    for (const char* chain : {"FORWARD", "DOCKER-USER"}) {
      if (lines.contains(fmt::format("-A {} {} {} -j ACCEPT", chain, direction, bridge)))
        return true;
    }
    return false;
  };
  return drops && !(accepts("-i") && accepts("-o"));
}

}  // namespace muster::app
