// src/agent/network/policy_dataplane.h
//
// PolicyDataplane: brings network policies into the packet filter of the node. It knows what the
// kernel has, because it asked once and made every change since: a pod more is an address in some
// sets, and a second pass writes nothing.
//
// Packets meet the policies where they are forwarded, after the translation of Services: first what
// the sender may open, then what the receiver may get. Connections that were accepted go on.
//
// Life cycle: Open() after EnsureHost() made the table. After an error nobody knows what the kernel
//             has: throw it away and open another one.
// Thread:     one at a time; blocking.
// Invariants: an address is restricted by a whole chain at any moment: sets and chains are made
//             before an address is led there, and go after it is not. Transactions are of
//             kMaxNftBatchBytes, so much takes several.

#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "agent/network/nft_socket.h"
#include "agent/network/policy_table.h"

namespace muster::agent {

class PolicyDataplane {
 public:
  struct Applied {
    size_t added = 0, removed = 0;  // addresses of peers, and of pods that are restricted
    size_t chains = 0;              // that were made or written anew
    size_t transactions = 0;
  };

  static Result<PolicyDataplane> Open();

  // This table and nothing else.
  Result<Applied> Replace(const PolicyTable& want);

 private:
  explicit PolicyDataplane(NftSocket socket) : socket_(std::move(socket)) {}
  Status SendIfLarge(NftBatch& batch, Applied& applied);
  Status Send(NftBatch& batch, Applied& applied);
  Status ChangePeers(const PolicyTable& want, NftBatch& batch, Applied& applied);
  Status MakeChains(const PolicyTable& want, NftBatch& batch, Applied& applied);
  void Lead(std::string_view map, std::map<Ipv4, std::string>& have,
            const std::map<Ipv4, std::string>& want, NftBatch& batch, Applied& applied);
  void DeleteUnused(const PolicyTable& want, NftBatch& batch);

  NftSocket socket_;
  std::map<std::string, std::set<Ipv4>> peers_;
  std::map<std::string, std::optional<PolicyChain>> chains_;  // nullopt: its rules are not known
  std::map<Ipv4, std::string> ingress_, egress_;
};

}  // namespace muster::agent
