#include "agent/network/policy_dataplane.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "agent/network/policy_batch.h"

namespace muster::agent {

Result<PolicyDataplane> PolicyDataplane::Open() {
  ASSIGN_OR_RETURN(NftSocket socket, NftSocket::Open());
  PolicyDataplane dataplane(std::move(socket));
  ASSIGN_OR_RETURN(dataplane.ingress_, dataplane.socket_.ListAddresses(kIsolatedIn));
  ASSIGN_OR_RETURN(dataplane.egress_, dataplane.socket_.ListAddresses(kIsolatedOut));
  ASSIGN_OR_RETURN(const std::set<std::string> chains, dataplane.socket_.ListChainNames());
  for (const std::string& name : chains) {
    if (name.starts_with(kPolicyChainPrefix)) dataplane.chains_[name];
  }
  ASSIGN_OR_RETURN(const std::set<std::string> sets, dataplane.socket_.ListSetNames());
  for (const std::string& name : sets) {
    if (!name.starts_with(kPolicyPeersPrefix)) continue;
    ASSIGN_OR_RETURN(const auto addresses, dataplane.socket_.ListAddresses(name));
    std::set<Ipv4>& peers = dataplane.peers_[name];
    for (const auto& [address, none] : addresses) peers.insert(address);
  }
  return dataplane;
}

Status PolicyDataplane::Send(NftBatch& batch, Applied& applied) {
  if (batch.empty()) return Status::Ok();
  ++applied.transactions;
  return socket_.Apply(std::exchange(batch, NftBatch()));
}

Status PolicyDataplane::SendIfLarge(NftBatch& batch, Applied& applied) {
  return batch.bytes() > kMaxNftBatchBytes ? Send(batch, applied) : Status::Ok();
}

Status PolicyDataplane::ChangePeers(const PolicyTable& want, NftBatch& batch, Applied& applied) {
  constexpr size_t kPerStep = 1000;  // far less than a transaction may have
  PolicyBatch commands(batch);
  for (const auto& [name, wanted] : want.peers) {
    const auto [entry, is_new] = peers_.try_emplace(name);
    if (is_new) commands.AddPeers(name);
    std::vector<Ipv4> add, remove;
    std::ranges::set_difference(wanted, entry->second, std::back_inserter(add));
    std::ranges::set_difference(entry->second, wanted, std::back_inserter(remove));
    applied.added += add.size();
    applied.removed += remove.size();
    for (auto* list : {&remove, &add}) {
      for (size_t from = 0; from < list->size(); from += kPerStep) {
        const auto begin = list->begin() + static_cast<std::ptrdiff_t>(from);
        const auto step = std::min(kPerStep, list->size() - from);
        const std::vector<Ipv4> part(begin, begin + static_cast<std::ptrdiff_t>(step));
        list == &add ? commands.AddPeers(name, part) : commands.DeletePeers(name, part);
        RETURN_IF_ERROR(SendIfLarge(batch, applied));
      }
    }
    entry->second = wanted;
    RETURN_IF_ERROR(SendIfLarge(batch, applied));
  }
  return Status::Ok();
}

// A chain's rules are in one transaction; those that lead to others are written last.
Status PolicyDataplane::MakeChains(const PolicyTable& want, NftBatch& batch, Applied& applied) {
  PolicyBatch commands(batch);
  for (const auto& [name, chain] : want.chains) {
    if (chains_.try_emplace(name).second) commands.AddChain(name);
  }
  for (const bool both : {false, true}) {
    for (const auto& [name, chain] : want.chains) {
      std::optional<PolicyChain>& have = chains_[name];
      if (chain.both.empty() == both || have == chain) continue;
      commands.SetRules(name, chain);
      have = chain;
      ++applied.chains;
      RETURN_IF_ERROR(SendIfLarge(batch, applied));
    }
  }
  return Status::Ok();
}

void PolicyDataplane::Lead(std::string_view map, std::map<Ipv4, std::string>& have,
                           const std::map<Ipv4, std::string>& want, NftBatch& batch,
                           Applied& applied) {
  std::map<Ipv4, std::string> remove, add;
  std::ranges::set_difference(have, want, std::inserter(remove, remove.end()));
  std::ranges::set_difference(want, have, std::inserter(add, add.end()));
  PolicyBatch commands(batch);
  commands.Release(map, remove);
  commands.Isolate(map, add);
  applied.removed += remove.size();
  applied.added += add.size();
  have = want;
}

void PolicyDataplane::DeleteUnused(const PolicyTable& want, NftBatch& batch) {
  PolicyBatch commands(batch);
  const auto unused = [&](const auto& entry) { return !want.chains.contains(entry.first); };
  for (const auto& entry : chains_) {
    if (unused(entry)) commands.DeleteRules(entry.first);
  }
  for (const auto& entry : chains_) {
    if (unused(entry)) commands.DeleteChain(entry.first);
  }
  std::erase_if(chains_, unused);
  std::erase_if(peers_, [&](const auto& entry) {
    if (want.peers.contains(entry.first)) return false;
    commands.DeletePeers(entry.first);
    return true;
  });
}

Result<PolicyDataplane::Applied> PolicyDataplane::Replace(const PolicyTable& want) {
  Applied applied;
  NftBatch batch;
  RETURN_IF_ERROR(ChangePeers(want, batch, applied));
  RETURN_IF_ERROR(MakeChains(want, batch, applied));
  Lead(kIsolatedIn, ingress_, want.ingress, batch, applied);
  Lead(kIsolatedOut, egress_, want.egress, batch, applied);
  DeleteUnused(want, batch);
  RETURN_IF_ERROR(Send(batch, applied));
  return applied;
}

}  // namespace muster::agent
