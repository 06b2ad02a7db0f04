// src/agent/network/nft_batch.h
//
// NftBatch: one transaction on the nftables table `muster`, as the netlink messages that the kernel
// takes: it happens whole or not at all. The program nft would need as long as it takes to read
// every element that there is, for each change.
//
// Life cycle: fill, then Finish() once. Thread: any (a value).

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "agent/network/nft_elements.h"

namespace muster::agent {

class NetlinkRequest;

class NftBatch {
 public:
  // Everything in a batch is done in this order. A chain with its rules:
  void AddChain(const ServiceChain& chain);
  // REQUIRES: no element leads there any more.
  void DeleteChain(const ServiceChain& chain);
  void Add(const NftElements& elements);
  void Delete(const NftElements& elements);
  // Any other command (nft_expressions.h).
  void Append(NetlinkRequest& request);

  size_t bytes() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  // The whole message; the kernel acknowledges its last command.
  std::string Finish();

 private:
  void AddRules(const ServiceChain& chain);
  void Elements(uint16_t type, const NftElements& elements);

  std::string bytes_;
  size_t last_ = 0;  // where the last message begins
  uint32_t sequence_ = 1;
};

}  // namespace muster::agent
