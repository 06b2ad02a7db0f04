#include "agent/network/policy_batch.h"

#include <endian.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

#include "agent/network/host_network.h"
#include "agent/network/nft_expressions.h"

namespace muster::agent {

namespace {

// An attribute may have 64 KiB.
constexpr size_t kMaxElementsPerMessage = 400;
constexpr uint32_t kTypeOfAddresses = 7;  // what nft calls ipv4_addr

uint32_t Word(Ipv4 address) { return htobe32(address.value); }

NetlinkRequest ElementsMessage(uint16_t type, std::string_view set) {
  NetlinkRequest request = NftMessage(type, type == NFT_MSG_NEWSETELEM ? NLM_F_CREATE : 0);
  request.Text(NFTA_SET_ELEM_LIST_TABLE, kNftTable).Text(NFTA_SET_ELEM_LIST_SET, set);
  request.Begin(NFTA_SET_ELEM_LIST_ELEMENTS);
  return request;
}

// `chain`: "" for one of a set.
void AppendElement(NetlinkRequest& request, Ipv4 address, std::string_view chain) {
  const uint32_t key = Word(address);
  request.Begin(NFTA_LIST_ELEM);
  request.Begin(NFTA_SET_ELEM_KEY).Bytes(NFTA_DATA_VALUE, &key, sizeof key).End();
  if (!chain.empty()) {
    request.Begin(NFTA_SET_ELEM_DATA).Begin(NFTA_DATA_VERDICT);
    request.Number(NFTA_VERDICT_CODE, htobe32(static_cast<uint32_t>(NFT_JUMP)));
    request.Text(NFTA_VERDICT_CHAIN, chain).End().End();
  }
  request.End();
}

// As many messages as it takes. element(item) gives an address and a chain.
template <class Items, class Element>
void AppendElements(NftBatch& batch, uint16_t type, std::string_view set, const Items& items,
                    Element element) {
  for (auto item = items.begin(); item != items.end();) {
    NetlinkRequest request = ElementsMessage(type, set);
    for (size_t n = 0; n < kMaxElementsPerMessage && item != items.end(); ++n, ++item) {
      const auto& [address, chain] = element(*item);
      AppendElement(request, address, chain);
    }
    request.End();
    batch.Append(request);
  }
}

std::pair<Ipv4, std::string_view> OfSet(Ipv4 address) { return {address, {}}; }

NetlinkRequest SetMessage(uint16_t type, uint16_t flags, const std::string& name) {
  NetlinkRequest request = NftMessage(type, flags);
  request.Text(NFTA_SET_TABLE, kNftTable).Text(NFTA_SET_NAME, name);
  return request;
}

NetlinkRequest ChainMessage(uint16_t type, uint16_t flags, const std::string& name) {
  NetlinkRequest request = NftMessage(type, flags);
  request.Text(NFTA_CHAIN_TABLE, kNftTable).Text(NFTA_CHAIN_NAME, name);
  return request;
}

NetlinkRequest RuleMessage(uint16_t type, uint16_t flags, const std::string& chain) {
  NetlinkRequest request = NftMessage(type, flags);
  request.Text(NFTA_RULE_TABLE, kNftTable).Text(NFTA_RULE_CHAIN, chain);
  return request;
}

// The address at `offset` is in the range, or is not.
void CompareRange(NftExpressions& rule, uint32_t offset, const Ipv4Prefix& range, bool inside) {
  const uint32_t mask = range.length == 0 ? 0 : htobe32(~uint32_t{0} << (32 - range.length));
  const uint32_t network = Word(range.Network());
  rule.Payload(kIpHeader, offset, sizeof network, 0);
  if (range.length < 32) rule.And(0, mask);
  rule.Compare(inside ? NFT_CMP_EQ : NFT_CMP_NEQ, 0, &network, sizeof network);
}

void ComparePorts(NftExpressions& rule, uint16_t first, uint16_t last) {
  const uint16_t low = htobe16(first), high = htobe16(last);
  rule.Payload(kTransportHeader, kPortOffset, sizeof low, 0);
  if (low == high) return rule.Compare(NFT_CMP_EQ, 0, &low, sizeof low);
  rule.Compare(NFT_CMP_GTE, 0, &low, sizeof low);
  rule.Compare(NFT_CMP_LTE, 0, &high, sizeof high);
}

}  // namespace

void PolicyBatch::AddPeers(const std::string& name) {
  NetlinkRequest request = SetMessage(NFT_MSG_NEWSET, NLM_F_CREATE, name);
  request.Number(NFTA_SET_FLAGS, 0)
      .Number(NFTA_SET_KEY_TYPE, htobe32(kTypeOfAddresses))
      .Number(NFTA_SET_KEY_LEN, htobe32(sizeof(uint32_t)))
      .Number(NFTA_SET_ID, htobe32(++sets_));
  batch_.Append(request);
}

void PolicyBatch::AddPeers(const std::string& name, const std::vector<Ipv4>& addresses) {
  AppendElements(batch_, NFT_MSG_NEWSETELEM, name, addresses, OfSet);
}

void PolicyBatch::DeletePeers(const std::string& name, const std::vector<Ipv4>& addresses) {
  AppendElements(batch_, NFT_MSG_DELSETELEM, name, addresses, OfSet);
}

void PolicyBatch::DeletePeers(const std::string& name) {
  NetlinkRequest request = SetMessage(NFT_MSG_DELSET, 0, name);
  batch_.Append(request);
}

void PolicyBatch::AddChain(const std::string& name) {
  NetlinkRequest request = ChainMessage(NFT_MSG_NEWCHAIN, NLM_F_CREATE, name);
  batch_.Append(request);
}

// Of all parts: what one returns, the next one sees; what is left is dropped by each.
void PolicyBatch::SetRules(const std::string& name, const PolicyChain& chain) {
  DeleteRules(name);
  for (const std::string& part : chain.both) VerdictRule(name, NFT_JUMP, part);
  for (const PolicyMatch& match : chain.allow) Rule(name, chain.ingress, match);
  if (chain.both.empty()) VerdictRule(name, NF_DROP, {});
}

void PolicyBatch::DeleteRules(const std::string& name) {
  NetlinkRequest request = RuleMessage(NFT_MSG_DELRULE, 0, name);
  batch_.Append(request);
}

void PolicyBatch::DeleteChain(const std::string& name) {
  NetlinkRequest request = ChainMessage(NFT_MSG_DELCHAIN, 0, name);
  batch_.Append(request);
}

void PolicyBatch::VerdictRule(const std::string& chain, int verdict, std::string_view target) {
  NetlinkRequest request = RuleMessage(NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND, chain);
  NftExpressions rule(request);
  rule.Verdict(verdict, target);
  rule.Done();
  batch_.Append(request);
}

void PolicyBatch::Rule(const std::string& chain, bool ingress, const PolicyMatch& match) {
  const uint32_t other = ingress ? kSourceAddressOffset : kAddressOffset;
  NetlinkRequest request = RuleMessage(NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND, chain);
  NftExpressions rule(request);
  if (match.range) CompareRange(rule, other, *match.range, true);
  for (const Ipv4Prefix& except : match.except) CompareRange(rule, other, except, false);
  if (!match.peers.empty()) {
    rule.Payload(kIpHeader, other, sizeof(uint32_t), 0);
    rule.InSet(match.peers, 0);
  }
  if (match.protocol) {
    const uint8_t number = ProtocolNumber(*match.protocol);
    rule.Payload(kIpHeader, kProtocolOffset, sizeof number, 0);
    rule.Compare(NFT_CMP_EQ, 0, &number, sizeof number);
  }
  if (match.last_port != 0) ComparePorts(rule, match.first_port, match.last_port);
  rule.Verdict(NFT_RETURN);
  rule.Done();
  batch_.Append(request);
}

void PolicyBatch::Isolate(std::string_view map, const std::map<Ipv4, std::string>& chains) {
  AppendElements(batch_, NFT_MSG_NEWSETELEM, map, chains, [](const auto& entry) {
    return std::pair<Ipv4, std::string_view>(entry.first, entry.second);
  });
}

void PolicyBatch::Release(std::string_view map, const std::map<Ipv4, std::string>& chains) {
  AppendElements(batch_, NFT_MSG_DELSETELEM, map, chains,
                 [](const auto& entry) { return OfSet(entry.first); });
}

}  // namespace muster::agent
