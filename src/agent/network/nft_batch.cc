#include "agent/network/nft_batch.h"

#include <endian.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <optional>

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
    const int code = element.chain.IsOfEndpoint() ? NFT_JUMP : NFT_GOTO;
    request.Number(NFTA_VERDICT_CODE, htobe32(static_cast<uint32_t>(code)));
    request.Text(NFTA_VERDICT_CHAIN, element.chain.Name()).End().End();
  } else if (with_data && HasData(element.set)) {
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
  AddRules(chain);
}

namespace {

// The rules of one chain. KEY is ip daddr . ip protocol . th dport, or without the address.
class ChainRules {
 public:
  ChainRules(const ServiceChain& chain, NftBatch& batch) : chain_(chain), batch_(batch) {}

  // dnat ip to KEY . numgen random mod N map @endpoints
  void PickOne() {
    Add([&](NftExpressions& rule) {
      Mark(rule);
      rule.RandomBelow(chain_.endpoints, Key(rule));
      rule.InMap(NameOf(Either(NftSet::kEndpoints, NftSet::kNodeEndpoints)), 0, 0);
      rule.TranslateTo(0, 1);
    });
  }
  // KEY . ip saddr @clients, and what is there begins anew; then as KeepOne(). The data is that of
  // an entry that is there already.
  void KeepKnown() {
    Add([&](NftExpressions& rule) {
      ClientKey(rule);
      rule.InSet(NameOf(Either(NftSet::kClients, NftSet::kNodeClients)), 0);
      Note(rule, {});
      Mark(rule);
      Follow(rule);
    });
  }
  // KEY . numgen random mod N vmap @client_endpoints: jumps, and comes back if there is no room.
  void PickNoted() {
    Add([&](NftExpressions& rule) {
      rule.RandomBelow(chain_.endpoints, Key(rule));
      rule.ByVerdictMap(NameOf(Either(NftSet::kClientEndpoints, NftSet::kNodeClientEndpoints)), 0);
    });
  }
  // update @affinity { KEY . ip saddr timeout T + margin : ENDPOINT }, and in `clients` for T
  void NoteClient() {
    Add([&](NftExpressions& rule) { Note(rule, chain_.to); });
  }
  // dnat ip to KEY . ip saddr map @affinity
  void KeepOne() {
    Add([&](NftExpressions& rule) {
      Mark(rule);
      Follow(rule);
    });
  }

 private:
  static constexpr uint32_t kDataWord = 4;
  // So much longer there is data for a client than the client is known: a rule looks for the one
  // before the other.
  static constexpr Duration kAffinityMargin = milliseconds(500);

  Duration Timeout() const { return seconds(chain_.affinity_seconds); }

  NftSet Either(NftSet of_address, NftSet of_node) const {
    return chain_.node_port ? of_node : of_address;
  }
  void Mark(NftExpressions& rule) const {
    if (chain_.node_port) rule.Mark(kFromOutsideMark);
  }
  // Returns the next word.
  uint32_t Key(NftExpressions& rule) const {
    uint32_t next = 0;
    if (!chain_.node_port) rule.Payload(kIpHeader, kAddressOffset, 4, next++);
    rule.Payload(kIpHeader, kProtocolOffset, 1, next++);
    rule.Payload(kTransportHeader, kPortOffset, 2, next++);
    return next;
  }
  void ClientKey(NftExpressions& rule) const {
    rule.Payload(kIpHeader, kSourceAddressOffset, 4, Key(rule));
  }
  void Note(NftExpressions& rule, const ServiceEndpoint& endpoint) const {
    const std::array<uint32_t, 2> data = DataOf(endpoint);
    ClientKey(rule);
    rule.Load(kDataWord, &data[0], 4);
    rule.Load(kDataWord + 1, &data[1], 2);
    rule.Update(NameOf(Either(NftSet::kAffinity, NftSet::kNodeAffinity)), 0, kDataWord,
                Timeout() + kAffinityMargin);
    ClientKey(rule);
    rule.Update(NameOf(Either(NftSet::kClients, NftSet::kNodeClients)), 0, std::nullopt, Timeout());
  }
  void Follow(NftExpressions& rule) const {
    ClientKey(rule);
    rule.InMap(NameOf(Either(NftSet::kAffinity, NftSet::kNodeAffinity)), 0, 0);
    rule.TranslateTo(0, 1);
  }
  template <class Fill>
  void Add(const Fill& fill) {
    NetlinkRequest request = NftMessage(NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
    request.Text(NFTA_RULE_TABLE, kNftTable).Text(NFTA_RULE_CHAIN, chain_.Name());
    NftExpressions rule(request);
    fill(rule);
    rule.Done();
    batch_.Append(request);
  }

  const ServiceChain& chain_;
  NftBatch& batch_;
};

}  // namespace

void NftBatch::AddRules(const ServiceChain& chain) {
  ChainRules rules(chain, *this);
  if (chain.IsOfEndpoint()) {
    rules.NoteClient();
    return rules.KeepOne();
  }
  if (chain.affinity_seconds > 0) {
    rules.KeepKnown();
    rules.PickNoted();
  }
  rules.PickOne();
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
