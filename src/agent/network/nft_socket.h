// src/agent/network/nft_socket.h
//
// NftSocket: talks to nftables of one network namespace.
//
// Life cycle: Open() binds it to the network namespace of the caller.
// Thread:     one at a time; blocking (the kernel answers at once).

#pragma once

#include <set>
#include <string_view>

#include "agent/network/nft_batch.h"
#include "agent/network/nft_elements.h"
#include "agent/runtime/unique_fd.h"
#include "base/status.h"

namespace muster::agent {

// Above this a batch is sent and the next one begun: what the kernel takes from an ordinary user.
inline constexpr size_t kMaxNftBatchBytes = 128 * 1024;

class NftSocket {
 public:
  static Result<NftSocket> Open();

  Status Apply(NftBatch batch);
  // What the table has. NotFound: there is no table.
  Result<NftElements> ListSet(NftSet set);
  Result<std::set<ServiceChain>> ListChains();  // without the fixed ones

 private:
  explicit NftSocket(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace muster::agent
