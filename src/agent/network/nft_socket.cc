#include "agent/network/nft_socket.h"

#include <endian.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "agent/network/host_network.h"
#include "agent/network/netfilter_socket.h"
#include "agent/network/netlink_request.h"

namespace muster::agent {

namespace {

constexpr size_t kReplyBytes = 64 * 1024;
constexpr int kMaxListAttempts = 20;  // somebody else changes his own tables meanwhile

constexpr uint16_t kNewElement = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWSETELEM;
constexpr uint16_t kNewSet = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWSET;
constexpr uint16_t kNewChain = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWCHAIN;

Status NftError(int error, std::string_view doing) {
  return Error(error == ENOENT ? Reason::kNotFound : Reason::kInternalError,
               "network: {} of the table {}: {}", doing, kNftTable, std::strerror(error));
}

std::string_view TextOf(const char* data, size_t size) { return {data, strnlen(data, size)}; }

// NFTA_DATA_VALUE or the chain of NFTA_DATA_VERDICT.
template <size_t kWords>
void ReadData(const char* data, size_t size, std::array<uint32_t, kWords>& words,
              std::string* chain) {
  ForEachAttribute(data, size, [&](int type, const char* value, size_t length) {
    if (type == NFTA_DATA_VALUE) {
      std::memcpy(words.data(), value, std::min(length, sizeof words));
    } else if (type == NFTA_DATA_VERDICT && chain != nullptr) {
      ForEachAttribute(value, length, [&](int part, const char* text, size_t bytes) {
        if (part == NFTA_VERDICT_CHAIN) *chain = TextOf(text, bytes);
      });
    }
  });
}

NftElement ReadElement(NftSet set, const char* data, size_t size) {
  NftElement element;
  element.set = set;
  std::string chain;
  ForEachAttribute(data, size, [&](int type, const char* value, size_t length) {
    if (type == NFTA_SET_ELEM_KEY) ReadData(value, length, element.key, nullptr);
    if (type == NFTA_SET_ELEM_DATA) ReadData(value, length, element.data, &chain);
  });
  element.chain = ServiceChain::Parse(chain).value_or(ServiceChain());
  return element;
}

NetlinkRequest Question(uint16_t type) {
  return {static_cast<uint16_t>(NFNL_SUBSYS_NFTABLES << 8 | type), NLM_F_DUMP,
          nfgenmsg{.nfgen_family = AF_INET, .version = NFNETLINK_V0, .res_id = 0}};
}

}  // namespace

Result<NftSocket> NftSocket::Open() {
  ASSIGN_OR_RETURN(UniqueFd fd, OpenNetfilter());
  return NftSocket(std::move(fd));
}

Status NftSocket::Apply(NftBatch batch) {
  const std::string bytes = batch.Finish();
  if (send(fd_.get(), bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return NftError(errno, "change");
  // The kernel has answered already: the errors, and the acknowledgement of the last command.
  int error = 0;
  bool answered = false;
  alignas(nlmsghdr) std::array<char, kReplyBytes> buffer;
  while (true) {
    const ssize_t size = recv(fd_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (size < 0) return NftError(errno, "change");
    auto left = static_cast<uint32_t>(size);
    for (auto* message = reinterpret_cast<nlmsghdr*>(buffer.data()); NLMSG_OK(message, left);
         message = NLMSG_NEXT(message, left)) {
      if (message->nlmsg_type != NLMSG_ERROR) continue;
      answered = true;
      if (error == 0) error = -static_cast<nlmsgerr*>(NLMSG_DATA(message))->error;
    }
  }
  if (!answered) return NftError(EPROTO, "change");
  return error == 0 ? Status::Ok() : NftError(error, "change");
}

Status NftSocket::Dump(NetlinkRequest request, uint16_t wanted, Function<void()> begin,
                       Function<void(const char*, size_t)> visit) {
  for (int attempt = 1;; ++attempt) {
    begin();
    NetlinkRequest again = request;
    const int error = DumpNetfilter(
        fd_.get(), again, wanted, [&](const char* message, size_t size) { visit(message, size); });
    if (error == 0) return Status::Ok();
    if (error != EINTR || attempt == kMaxListAttempts) return NftError(error, "list");
  }
}

// visit(attributes, size) for each element.
Status NftSocket::DumpElements(std::string_view set, Function<void()> begin,
                               Function<void(const char*, size_t)> visit) {
  NetlinkRequest request = Question(NFT_MSG_GETSETELEM);
  request.Text(NFTA_SET_ELEM_LIST_TABLE, kNftTable).Text(NFTA_SET_ELEM_LIST_SET, set);
  return Dump(std::move(request), kNewElement, std::move(begin),
              [&](const char* message, size_t size) {
                ForEachAttribute(message, size, [&](int type, const char* list, size_t bytes) {
                  if (type != NFTA_SET_ELEM_LIST_ELEMENTS) return;
                  ForEachAttribute(list, bytes, [&](int, const char* element, size_t length) {
                    visit(element, length);
                  });
                });
              });
}

Result<NftElements> NftSocket::ListSet(NftSet set) {
  NftElements elements;
  RETURN_IF_ERROR(DumpElements(
      NameOf(set), [&] { elements.clear(); },
      [&](const char* element, size_t size) {
        elements.push_back(ReadElement(set, element, size));
      }));
  // While the kernel enlarges a set, it may list an element twice.
  std::ranges::sort(elements);
  elements.erase(std::ranges::unique(elements).begin(), elements.end());
  return elements;
}

Result<std::map<Ipv4, std::string>> NftSocket::ListAddresses(std::string_view set) {
  std::map<Ipv4, std::string> addresses;
  const auto read = [&](const char* data, size_t size) {
    std::array<uint32_t, 4> key = {};
    std::string chain;
    ForEachAttribute(data, size, [&](int type, const char* value, size_t length) {
      if (type == NFTA_SET_ELEM_KEY) ReadData(value, length, key, nullptr);
      if (type == NFTA_SET_ELEM_DATA) ReadData(value, length, key, &chain);
    });
    addresses[{be32toh(key[0])}] = std::move(chain);
  };
  RETURN_IF_ERROR(DumpElements(set, [&] { addresses.clear(); }, read));
  return addresses;
}

Result<std::set<std::string>> NftSocket::ListNames(uint16_t question, uint16_t wanted,
                                                   int table_attribute, int name_attribute) {
  std::set<std::string> names;
  RETURN_IF_ERROR(Dump(
      Question(question), wanted, [&] { names.clear(); },
      [&](const char* message, size_t size) {
        std::string_view table, name;
        ForEachAttribute(message, size, [&](int type, const char* text, size_t bytes) {
          if (type == table_attribute) table = TextOf(text, bytes);
          if (type == name_attribute) name = TextOf(text, bytes);
        });
        if (table == kNftTable) names.emplace(name);
      }));
  return names;
}

Result<std::set<std::string>> NftSocket::ListChainNames() {
  return ListNames(NFT_MSG_GETCHAIN, kNewChain, NFTA_CHAIN_TABLE, NFTA_CHAIN_NAME);
}

Result<std::set<std::string>> NftSocket::ListSetNames() {
  return ListNames(NFT_MSG_GETSET, kNewSet, NFTA_SET_TABLE, NFTA_SET_NAME);
}

Result<std::set<ServiceChain>> NftSocket::ListChains() {
  ASSIGN_OR_RETURN(const std::set<std::string> names, ListChainNames());
  std::set<ServiceChain> chains;
  for (const std::string& name : names) {
    const auto chain = ServiceChain::Parse(name);
    if (chain && !chain->IsFixed()) chains.insert(*chain);
  }
  return chains;
}

}  // namespace muster::agent
