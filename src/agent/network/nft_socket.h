// src/agent/network/nft_socket.h
//
// NftSocket: talks to nftables of one network namespace.
//
// Life cycle: Open() binds it to the network namespace of the caller.
// Thread:     one at a time; blocking (the kernel answers at once).

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "agent/network/ipv4.h"
#include "agent/network/netlink_request.h"
#include "agent/network/nft_batch.h"
#include "agent/network/nft_elements.h"
#include "agent/runtime/unique_fd.h"
#include "base/status.h"
#include "base/task.h"

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
  // Of a set or map whose keys are addresses: where they lead, "" in a set.
  Result<std::map<Ipv4, std::string>> ListAddresses(std::string_view set);
  Result<std::set<std::string>> ListChainNames();
  Result<std::set<std::string>> ListSetNames();

 private:
  explicit NftSocket(UniqueFd fd) : fd_(std::move(fd)) {}
  // `begin` before the first message, and again when what is listed changed meanwhile.
  Status Dump(NetlinkRequest request, uint16_t wanted, Function<void()> begin,
              Function<void(const char*, size_t)> visit);
  Status DumpElements(std::string_view set, Function<void()> begin,
                      Function<void(const char*, size_t)> visit);
  Result<std::set<std::string>> ListNames(uint16_t question, uint16_t wanted, int table_attribute,
                                          int name_attribute);

  UniqueFd fd_;
};

}  // namespace muster::agent
