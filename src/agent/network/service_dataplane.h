// src/agent/network/service_dataplane.h
//
// ServiceDataplane: brings Services into the packet filter of the node. It knows what the kernel
// has, because it asked once and made every change since, so a change costs what it changes and a
// second pass writes nothing.
//
// Life cycle: Open() after EnsureHost() made the table. After an error nobody knows what the kernel
//             has: throw it away and open another one.
// Thread:     one at a time; blocking.
// Invariants: all of a frontend changes in one transaction: a new connection finds its former
//             endpoints or its new ones. Transactions are of kMaxNftBatchBytes, so many frontends
//             take several.

#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "agent/network/nft_socket.h"
#include "agent/network/service_table.h"

namespace muster::agent {

class ServiceDataplane {
 public:
  struct Applied {
    size_t added = 0, removed = 0;  // elements
    size_t transactions = 0;
    // Endpoints that frontends of UDP have lost: flows that were translated to one go on unless
    // they are forgotten (connection_tracking.h). A port of the node that leads somewhere now has
    // lost kNowhere.
    std::map<ServiceFrontend, std::set<ServiceEndpoint>> lost_datagram_endpoints;
  };

  static Result<ServiceDataplane> Open();

  // These frontends lead there now; the others stay as they are.
  Result<Applied> Apply(const ServiceTable& changes);
  // These frontends and no others.
  Result<Applied> Replace(const ServiceTable& whole);

 private:
  explicit ServiceDataplane(NftSocket socket) : socket_(std::move(socket)) {}
  void Count(const NftElements& elements, int by);
  Status Send(NftBatch& batch, Applied& applied);
  void Change(const ServiceFrontend& frontend, const ServiceBackend& backend, NftBatch& batch,
              Applied& applied);
  void AddKeptChains(NftBatch& batch);
  void DeleteUnusedChains(NftBatch& batch);
  Status ForgetClients();

  NftSocket socket_;
  std::map<ServiceFrontend, NftElements> have_;
  std::set<ServiceChain> chains_;      // that exist
  std::map<ServiceChain, int> users_;  // elements that lead there
  // Endpoints that clients may have been led to are gone. Also at first: nobody knows.
  bool forget_clients_ = true;
};

}  // namespace muster::agent
