#include "agent/network/connection_tracking.h"

#include <endian.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "agent/network/netfilter_socket.h"

namespace muster::agent {

namespace {

constexpr uint16_t kGet = NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_GET;
constexpr uint16_t kNew = NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_NEW;
constexpr uint16_t kDelete = NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_DELETE;
constexpr int kMaxListAttempts = 20;

// Of one direction of a flow.
struct Tuple {
  ServiceEndpoint from, to;
  uint8_t protocol = 0;
};

template <class Number>
Number NumberOf(const char* value, size_t size) {
  Number number = 0;
  if (size >= sizeof number) std::memcpy(&number, value, sizeof number);
  return number;
}

Tuple ReadTuple(const char* attributes, size_t bytes) {
  Tuple tuple;
  ForEachAttribute(attributes, bytes, [&](int part, const char* inner, size_t length) {
    ForEachAttribute(inner, length, [&](int type, const char* value, size_t size) {
      if (part == CTA_TUPLE_IP) {
        const Ipv4 address{be32toh(NumberOf<uint32_t>(value, size))};
        if (type == CTA_IP_V4_SRC) tuple.from.address = address;
        if (type == CTA_IP_V4_DST) tuple.to.address = address;
      } else if (part == CTA_TUPLE_PROTO) {
        if (type == CTA_PROTO_NUM) tuple.protocol = NumberOf<uint8_t>(value, size);
        if (type == CTA_PROTO_SRC_PORT) tuple.from.port = be16toh(NumberOf<uint16_t>(value, size));
        if (type == CTA_PROTO_DST_PORT) tuple.to.port = be16toh(NumberOf<uint16_t>(value, size));
      }
    });
  });
  return tuple;
}

nfgenmsg Header() { return {.nfgen_family = AF_INET, .version = NFNETLINK_V0, .res_id = 0}; }

// 0 or an errno.
int Forget(int fd, std::string_view tuple) {
  NetlinkRequest request(kDelete, NLM_F_ACK, Header());
  request.Bytes(CTA_TUPLE_ORIG, tuple.data(), tuple.size());
  const std::string_view bytes = request.Finish(0);
  if (send(fd, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return errno;
  struct {
    nlmsghdr header;
    nlmsgerr error;
  } answer{};
  if (recv(fd, &answer, sizeof answer, 0) < 0) return errno;
  return answer.header.nlmsg_type == NLMSG_ERROR ? -answer.error.error : EPROTO;
}

}  // namespace

Result<size_t> ForgetDatagrams(const std::map<ServiceFrontend, std::set<ServiceEndpoint>>& lost) {
  if (lost.empty()) return size_t{0};
  ASSIGN_OR_RETURN(const UniqueFd fd, OpenNetfilter());
  std::vector<std::string> flows;
  const auto is_lost = [&](const Tuple& original, const Tuple& reply) {
    const bool nowhere = reply.from == original.to && reply.to == original.from;
    for (const Ipv4 address : {original.to.address, Ipv4{}}) {
      for (const bool host_port : {false, true}) {
        const auto found = lost.find({address, ServiceProtocol::kUdp, original.to.port, host_port});
        if (found != lost.end() && found->second.contains(nowhere ? kNowhere : reply.from))
          return true;
      }
    }
    return false;
  };
  int error = EINTR;
  for (int attempt = 0; attempt < kMaxListAttempts && error == EINTR; ++attempt) {
    flows.clear();
    NetlinkRequest request(kGet, NLM_F_DUMP, Header());
    error = DumpNetfilter(fd.get(), request, kNew, [&](const char* attributes, size_t size) {
      std::string_view original;
      Tuple reply;
      ForEachAttribute(attributes, size, [&](int type, const char* value, size_t length) {
        if (type == CTA_TUPLE_ORIG) original = {value, length};
        if (type == CTA_TUPLE_REPLY) reply = ReadTuple(value, length);
      });
      const Tuple first = ReadTuple(original.data(), original.size());
      if (first.protocol == IPPROTO_UDP && is_lost(first, reply)) flows.emplace_back(original);
    });
  }
  for (const std::string& flow : flows) {
    if (error != 0) break;
    error = Forget(fd.get(), flow);
    if (error == ENOENT) error = 0;  // it ended by itself
  }
  if (error == 0) return flows.size();
  return Error(Reason::kInternalError, "network: forget flows of lost endpoints: {}",
               std::strerror(error));
}

}  // namespace muster::agent
