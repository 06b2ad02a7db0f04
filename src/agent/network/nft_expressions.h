// src/agent/network/nft_expressions.h
//
// The messages of nftables and the expressions of a rule, as the kernel takes them and as nft
// writes them itself, so that it can list the rules.
//
// Thread: any (values).

#pragma once

#include <endian.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "agent/network/netlink_request.h"
#include "base/time.h"

namespace muster::agent {

inline constexpr uint32_t kIpHeader = NFT_PAYLOAD_NETWORK_HEADER;
inline constexpr uint32_t kTransportHeader = NFT_PAYLOAD_TRANSPORT_HEADER;
inline constexpr uint32_t kSourceAddressOffset = 12, kAddressOffset = 16, kProtocolOffset = 9;
inline constexpr uint32_t kPortOffset = 2;

// `type` e.g. NFT_MSG_NEWRULE, of IPv4.
inline NetlinkRequest NftMessage(uint16_t type, uint16_t flags) {
  return {static_cast<uint16_t>(NFNL_SUBSYS_NFTABLES << 8 | type), flags,
          nfgenmsg{.nfgen_family = AF_INET, .version = NFNETLINK_V0, .res_id = 0}};
}

// Of four bytes; numbered as nft does, which calls the first one by the name of the first four.
inline uint32_t NftRegister(uint32_t number) {
  return number == 0 ? uint32_t{NFT_REG_1} : NFT_REG32_00 + number;
}

// The expressions of a rule, one after the other; Done() behind the last one.
class NftExpressions {
 public:
  explicit NftExpressions(NetlinkRequest& request) : request_(request) {
    request_.Begin(NFTA_RULE_EXPRESSIONS);
  }
  void Done() { request_.End(); }

  void Payload(uint32_t base, uint32_t offset, uint32_t size, uint32_t to) {
    Begin("payload");
    Number(NFTA_PAYLOAD_DREG, NftRegister(to));
    Number(NFTA_PAYLOAD_BASE, base);
    Number(NFTA_PAYLOAD_OFFSET, offset);
    Number(NFTA_PAYLOAD_LEN, size);
    End();
  }
  void RandomBelow(uint32_t bound, uint32_t to) {
    Begin("numgen");
    Number(NFTA_NG_DREG, NftRegister(to));
    Number(NFTA_NG_MODULUS, bound);
    Number(NFTA_NG_TYPE, NFT_NG_RANDOM);
    Number(NFTA_NG_OFFSET, 0);
    End();
  }
  void InMap(std::string_view map, uint32_t key, uint32_t to) {
    Begin("lookup");
    request_.Text(NFTA_LOOKUP_SET, map);
    Number(NFTA_LOOKUP_SREG, NftRegister(key));
    Number(NFTA_LOOKUP_DREG, NftRegister(to));
    End();
  }
  // An entry's time begins anew; one that is not there comes with this data, one that is keeps its
  // own.
  void Update(std::string_view set, uint32_t key, std::optional<uint32_t> data, Duration timeout) {
    Begin("dynset");
    request_.Text(NFTA_DYNSET_SET_NAME, set);
    Number(NFTA_DYNSET_OP, NFT_DYNSET_OP_UPDATE);
    Number(NFTA_DYNSET_SREG_KEY, NftRegister(key));
    if (data) Number(NFTA_DYNSET_SREG_DATA, NftRegister(*data));
    const uint64_t timeout_ms = htobe64(static_cast<uint64_t>(timeout / milliseconds(1)));
    request_.Bytes(NFTA_DYNSET_TIMEOUT, &timeout_ms, sizeof timeout_ms);
    End();
  }
  void Load(uint32_t to, const void* data, size_t size) {
    Begin("immediate");
    Number(NFTA_IMMEDIATE_DREG, NftRegister(to));
    request_.Begin(NFTA_IMMEDIATE_DATA).Bytes(NFTA_DATA_VALUE, data, size).End();
    End();
  }
  void ByVerdictMap(std::string_view map, uint32_t key) {
    Begin("lookup");
    request_.Text(NFTA_LOOKUP_SET, map);
    Number(NFTA_LOOKUP_SREG, NftRegister(key));
    Number(NFTA_LOOKUP_DREG, NFT_REG_VERDICT);
    End();
  }
  void Meta(uint32_t key, uint32_t to) {
    Begin("meta");
    Number(NFTA_META_KEY, key);
    Number(NFTA_META_DREG, NftRegister(to));
    End();
  }
  // meta mark set meta mark | `bits`
  void Mark(uint32_t bits) {
    Meta(NFT_META_MARK, 0);
    const uint32_t mask = ~bits;
    Begin("bitwise");
    Number(NFTA_BITWISE_SREG, NftRegister(0));
    Number(NFTA_BITWISE_DREG, NftRegister(0));
    Number(NFTA_BITWISE_LEN, sizeof mask);
    request_.Begin(NFTA_BITWISE_MASK).Bytes(NFTA_DATA_VALUE, &mask, sizeof mask).End();
    request_.Begin(NFTA_BITWISE_XOR).Bytes(NFTA_DATA_VALUE, &bits, sizeof bits).End();
    End();
    Begin("meta");
    Number(NFTA_META_KEY, NFT_META_MARK);
    Number(NFTA_META_SREG, NftRegister(0));
    End();
  }
  // Goes on if it is there.
  void InSet(std::string_view set, uint32_t key) {
    Begin("lookup");
    request_.Text(NFTA_LOOKUP_SET, set);
    Number(NFTA_LOOKUP_SREG, NftRegister(key));
    End();
  }
  // Goes on if the comparison holds; `data` as it stands in the packet.
  void Compare(uint32_t operation, uint32_t from, const void* data, size_t size) {
    Begin("cmp");
    Number(NFTA_CMP_SREG, NftRegister(from));
    Number(NFTA_CMP_OP, operation);
    request_.Begin(NFTA_CMP_DATA).Bytes(NFTA_DATA_VALUE, data, size).End();
    End();
  }
  // The bits of `mask` (as it stands in the packet) of four bytes.
  void And(uint32_t at, uint32_t mask) {
    const uint32_t none = 0;
    Begin("bitwise");
    Number(NFTA_BITWISE_SREG, NftRegister(at));
    Number(NFTA_BITWISE_DREG, NftRegister(at));
    Number(NFTA_BITWISE_LEN, sizeof mask);
    request_.Begin(NFTA_BITWISE_MASK).Bytes(NFTA_DATA_VALUE, &mask, sizeof mask).End();
    request_.Begin(NFTA_BITWISE_XOR).Bytes(NFTA_DATA_VALUE, &none, sizeof none).End();
    End();
  }
  // Of NF_DROP, NFT_RETURN, NFT_JUMP with a chain, ...
  void Verdict(int code, std::string_view chain = {}) {
    Begin("immediate");
    Number(NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
    request_.Begin(NFTA_IMMEDIATE_DATA).Begin(NFTA_DATA_VERDICT);
    Number(NFTA_VERDICT_CODE, static_cast<uint32_t>(code));
    if (!chain.empty()) request_.Text(NFTA_VERDICT_CHAIN, chain);
    request_.End().End();
    End();
  }
  void TranslateTo(uint32_t address, uint32_t port) {
    Begin("nat");
    Number(NFTA_NAT_TYPE, NFT_NAT_DNAT);
    Number(NFTA_NAT_FAMILY, AF_INET);
    Number(NFTA_NAT_REG_ADDR_MIN, NftRegister(address));
    Number(NFTA_NAT_REG_PROTO_MIN, NftRegister(port));
    End();
  }

 private:
  void Begin(std::string_view name) {
    request_.Begin(NFTA_LIST_ELEM).Text(NFTA_EXPR_NAME, name).Begin(NFTA_EXPR_DATA);
  }
  void End() { request_.End().End(); }
  void Number(uint16_t type, uint32_t number) { request_.Number(type, htobe32(number)); }

  NetlinkRequest& request_;
};

}  // namespace muster::agent
