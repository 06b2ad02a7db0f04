// src/agent/network/policy_batch.h
//
// A PolicyTable as commands for nftables: sets "policy_peers_..." of addresses, chains
// "policy_chain_..." that return what they allow and drop all else, and elements of the maps
// isolated_in and isolated_out, which jump there.
//
// Thread: any (writes into a value).

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "agent/network/nft_batch.h"
#include "agent/network/policy_table.h"

namespace muster::agent {

inline constexpr std::string_view kIsolatedIn = "isolated_in", kIsolatedOut = "isolated_out";

class PolicyBatch {
 public:
  // The commands go behind what is in `batch`, which outlives this.
  explicit PolicyBatch(NftBatch& batch) : batch_(batch) {}

  void AddPeers(const std::string& name);
  void AddPeers(const std::string& name, const std::vector<Ipv4>& addresses);
  void DeletePeers(const std::string& name, const std::vector<Ipv4>& addresses);
  // REQUIRES: no rule looks there any more.
  void DeletePeers(const std::string& name);

  void AddChain(const std::string& name);
  // In place of those that it has.
  void SetRules(const std::string& name, const PolicyChain& chain);
  void DeleteRules(const std::string& name);
  // REQUIRES: it has no rules, and nothing leads there any more.
  void DeleteChain(const std::string& name);

  // Elements of a map.
  void Isolate(std::string_view map, const std::map<Ipv4, std::string>& chains);
  void Release(std::string_view map, const std::map<Ipv4, std::string>& chains);

 private:
  void Rule(const std::string& chain, bool ingress, const PolicyMatch& match);
  void VerdictRule(const std::string& chain, int verdict, std::string_view target);

  NftBatch& batch_;
  uint32_t sets_ = 0;
};

}  // namespace muster::agent
