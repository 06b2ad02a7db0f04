#include "agent/network/nft_batch.h"

#include <endian.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <sys/socket.h>

#include <cstring>

#include "agent/network/host_network.h"
#include "agent/network/netlink_request.h"
#include "base/check.h"

namespace muster::agent {

namespace {

// An attribute may have 64 KiB.
constexpr size_t kMaxElementsPerMessage = 400;
constexpr uint32_t kIpHeader = NFT_PAYLOAD_NETWORK_HEADER;
constexpr uint32_t kTransportHeader = NFT_PAYLOAD_TRANSPORT_HEADER;
constexpr uint32_t kSourceAddressOffset = 12, kAddressOffset = 16, kProtocolOffset = 9;
constexpr uint32_t kPortOffset = 2;
// One for all, so that a client keeps its endpoint when a chain is made anew.
constexpr uint32_t kHashSeed = 0x6d757374;

uint16_t TypeOf(uint16_t message) {
  return static_cast<uint16_t>(NFNL_SUBSYS_NFTABLES << 8 | message);
}

nfgenmsg Header() { return {.nfgen_family = AF_INET, .version = NFNETLINK_V0, .res_id = 0}; }

NetlinkRequest Message(uint16_t type, uint16_t flags) { return {TypeOf(type), flags, Header()}; }

NetlinkRequest Edge(uint16_t type) {
  nfgenmsg header = Header();
  header.nfgen_family = AF_UNSPEC;
  header.res_id = htobe16(NFNL_SUBSYS_NFTABLES);
  return {type, 0, header};
}

// Of four bytes; numbered as nft does, which calls the first one by the name of the first four.
uint32_t Register(uint32_t number) {
  return number == 0 ? uint32_t{NFT_REG_1} : NFT_REG32_00 + number;
}

// The expressions of a rule, one after the other.
class Expressions {
 public:
  explicit Expressions(NetlinkRequest& request) : request_(request) {
    request_.Begin(NFTA_RULE_EXPRESSIONS);
  }
  void Done() { request_.End(); }

  void Payload(uint32_t base, uint32_t offset, uint32_t size, uint32_t to) {
    Begin("payload");
    Number(NFTA_PAYLOAD_DREG, Register(to));
    Number(NFTA_PAYLOAD_BASE, base);
    Number(NFTA_PAYLOAD_OFFSET, offset);
    Number(NFTA_PAYLOAD_LEN, size);
    End();
  }
  void RandomBelow(uint32_t bound, uint32_t to) {
    Begin("numgen");
    Number(NFTA_NG_DREG, Register(to));
    Number(NFTA_NG_MODULUS, bound);
    Number(NFTA_NG_TYPE, NFT_NG_RANDOM);
    Number(NFTA_NG_OFFSET, 0);
    End();
  }
  void InMap(std::string_view map, uint32_t key, uint32_t to) {
    Begin("lookup");
    request_.Text(NFTA_LOOKUP_SET, map);
    Number(NFTA_LOOKUP_SREG, Register(key));
    Number(NFTA_LOOKUP_DREG, Register(to));
    End();
  }
  // Of four bytes.
  void HashBelow(uint32_t bound, uint32_t from, uint32_t to) {
    Begin("hash");
    Number(NFTA_HASH_SREG, Register(from));
    Number(NFTA_HASH_DREG, Register(to));
    Number(NFTA_HASH_LEN, 4);
    Number(NFTA_HASH_MODULUS, bound);
    Number(NFTA_HASH_SEED, kHashSeed);
    Number(NFTA_HASH_OFFSET, 0);
    Number(NFTA_HASH_TYPE, NFT_HASH_JENKINS);
    End();
  }
  void Meta(uint32_t key, uint32_t to) {
    Begin("meta");
    Number(NFTA_META_KEY, key);
    Number(NFTA_META_DREG, Register(to));
    End();
  }
  // meta mark set meta mark | `bits`
  void Mark(uint32_t bits) {
    Meta(NFT_META_MARK, 0);
    const uint32_t mask = ~bits;
    Begin("bitwise");
    Number(NFTA_BITWISE_SREG, Register(0));
    Number(NFTA_BITWISE_DREG, Register(0));
    Number(NFTA_BITWISE_LEN, sizeof mask);
    request_.Begin(NFTA_BITWISE_MASK).Bytes(NFTA_DATA_VALUE, &mask, sizeof mask).End();
    request_.Begin(NFTA_BITWISE_XOR).Bytes(NFTA_DATA_VALUE, &bits, sizeof bits).End();
    End();
    Begin("meta");
    Number(NFTA_META_KEY, NFT_META_MARK);
    Number(NFTA_META_SREG, Register(0));
    End();
  }
  void TranslateTo(uint32_t address, uint32_t port) {
    Begin("nat");
    Number(NFTA_NAT_TYPE, NFT_NAT_DNAT);
    Number(NFTA_NAT_FAMILY, AF_INET);
    Number(NFTA_NAT_REG_ADDR_MIN, Register(address));
    Number(NFTA_NAT_REG_PROTO_MIN, Register(port));
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

NetlinkRequest ChainMessage(uint16_t type, uint16_t flags, const ServiceChain& chain) {
  NetlinkRequest request = Message(type, flags);
  request.Text(NFTA_CHAIN_TABLE, kNftTable).Text(NFTA_CHAIN_NAME, chain.Name());
  return request;
}

void AppendElement(NetlinkRequest& request, const NftElement& element, bool with_data) {
  request.Begin(NFTA_LIST_ELEM);
  request.Begin(NFTA_SET_ELEM_KEY)
      .Bytes(NFTA_DATA_VALUE, element.key.data(), KeyWords(element.set) * sizeof(uint32_t))
      .End();
  if (with_data && HasVerdict(element.set)) {
    request.Begin(NFTA_SET_ELEM_DATA).Begin(NFTA_DATA_VERDICT);
    request.Number(NFTA_VERDICT_CODE, htobe32(static_cast<uint32_t>(NFT_GOTO)));
    request.Text(NFTA_VERDICT_CHAIN, element.chain.Name()).End().End();
  } else if (with_data) {
    request.Begin(NFTA_SET_ELEM_DATA)
        .Bytes(NFTA_DATA_VALUE, element.data.data(), sizeof element.data)
        .End();
  }
  request.End();
}

}  // namespace

void NftBatch::Append(NetlinkRequest& request) {
  if (bytes_.empty()) {
    NetlinkRequest begin = Edge(NFNL_MSG_BATCH_BEGIN);
    bytes_ += begin.Finish(sequence_++);
  }
  last_ = bytes_.size();
  bytes_ += request.Finish(sequence_++);
}

void NftBatch::AddChain(const ServiceChain& chain) {
  NetlinkRequest request = ChainMessage(NFT_MSG_NEWCHAIN, NLM_F_CREATE, chain);
  Append(request);
  AddRule(chain);
}

// dnat ip to ip daddr . ip protocol . th dport . numgen random mod N map @endpoints
void NftBatch::AddRule(const ServiceChain& chain) {
  NetlinkRequest request = Message(NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
  request.Text(NFTA_RULE_TABLE, kNftTable).Text(NFTA_RULE_CHAIN, chain.Name());
  Expressions rule(request);
  if (chain.node_port) rule.Mark(kFromOutsideMark);
  uint32_t next = 0;
  if (!chain.node_port) rule.Payload(kIpHeader, kAddressOffset, 4, next++);
  rule.Payload(kIpHeader, kProtocolOffset, 1, next++);
  rule.Payload(kTransportHeader, kPortOffset, 2, next++);
  if (chain.by_client) {
    rule.Payload(kIpHeader, kSourceAddressOffset, 4, next + 1);
    rule.HashBelow(chain.endpoints, next + 1, next);
  } else {
    rule.RandomBelow(chain.endpoints, next);
  }
  rule.InMap(NameOf(chain.node_port ? NftSet::kNodeEndpoints : NftSet::kEndpoints), 0, 0);
  rule.TranslateTo(0, 1);
  rule.Done();
  Append(request);
}

void NftBatch::DeleteChain(const ServiceChain& chain) {
  NetlinkRequest rules = Message(NFT_MSG_DELRULE, 0);
  rules.Text(NFTA_RULE_TABLE, kNftTable).Text(NFTA_RULE_CHAIN, chain.Name());
  Append(rules);
  NetlinkRequest request = ChainMessage(NFT_MSG_DELCHAIN, 0, chain);
  Append(request);
}

void NftBatch::Elements(uint16_t type, const NftElements& elements) {
  const bool add = type == NFT_MSG_NEWSETELEM;
  for (size_t i = 0; i < elements.size();) {
    NetlinkRequest request = Message(type, add ? NLM_F_CREATE : 0);
    const NftSet set = elements[i].set;
    request.Text(NFTA_SET_ELEM_LIST_TABLE, kNftTable).Text(NFTA_SET_ELEM_LIST_SET, NameOf(set));
    request.Begin(NFTA_SET_ELEM_LIST_ELEMENTS);
    for (size_t n = 0; n < kMaxElementsPerMessage; ++n, ++i) {
      if (i == elements.size() || elements[i].set != set) break;
      AppendElement(request, elements[i], add);
    }
    request.End();
    Append(request);
  }
}

void NftBatch::Add(const NftElements& elements) { Elements(NFT_MSG_NEWSETELEM, elements); }

void NftBatch::Delete(const NftElements& elements) { Elements(NFT_MSG_DELSETELEM, elements); }

std::string NftBatch::Finish() {
  CHECK(!empty());
  nlmsghdr last{};
  std::memcpy(&last, bytes_.data() + last_, sizeof last);
  last.nlmsg_flags |= NLM_F_ACK;
  std::memcpy(bytes_.data() + last_, &last, sizeof last);
  NetlinkRequest end = Edge(NFNL_MSG_BATCH_END);
  bytes_ += end.Finish(sequence_);
  return std::move(bytes_);
}

}  // namespace muster::agent
