#include "agent/network/nft_batch.h"

#include <endian.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <sys/socket.h>

#include <cstring>

#include "agent/network/host_network.h"
#include "agent/network/netlink_request.h"
#include "agent/network/nft_expressions.h"
#include "base/check.h"

namespace muster::agent {

namespace {

// An attribute may have 64 KiB.
constexpr size_t kMaxElementsPerMessage = 400;

NetlinkRequest Edge(uint16_t type) {
  return {type, 0,
          nfgenmsg{.nfgen_family = AF_UNSPEC,
                   .version = NFNETLINK_V0,
                   .res_id = htobe16(NFNL_SUBSYS_NFTABLES)}};
}

NetlinkRequest ChainMessage(uint16_t type, uint16_t flags, const ServiceChain& chain) {
  NetlinkRequest request = NftMessage(type, flags);
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
  NetlinkRequest request = NftMessage(NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
  request.Text(NFTA_RULE_TABLE, kNftTable).Text(NFTA_RULE_CHAIN, chain.Name());
  NftExpressions rule(request);
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
  NetlinkRequest rules = NftMessage(NFT_MSG_DELRULE, 0);
  rules.Text(NFTA_RULE_TABLE, kNftTable).Text(NFTA_RULE_CHAIN, chain.Name());
  Append(rules);
  NetlinkRequest request = ChainMessage(NFT_MSG_DELCHAIN, 0, chain);
  Append(request);
}

void NftBatch::Elements(uint16_t type, const NftElements& elements) {
  const bool add = type == NFT_MSG_NEWSETELEM;
  for (size_t i = 0; i < elements.size();) {
    NetlinkRequest request = NftMessage(type, add ? NLM_F_CREATE : 0);
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
