#include "agent/network/netlink.h"

#include <endian.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>

#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "agent/network/netlink_request.h"
#include "agent/runtime/unique_fd.h"
#include "base/check.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/task.h"

namespace muster::agent {

namespace {

// Above every metric in normal use: whoever has a better idea of our ranges wins.
constexpr uint32_t kUnreachableMetric = 1'000'000;
// How long a new link may take to come up: about a second.
constexpr int kMaxLinkEventTurns = 100;
constexpr int kLinkEventTurnMs = 10;
constexpr size_t kReplyBytes = 32 * 1024;

// Sends and reads replies to the end. Gives links and routes to `on_object`; returns 0 or an errno.
int Talk(int fd, NetlinkRequest& request, Function<void(const nlmsghdr*)> on_object = {}) {
  static std::atomic<uint32_t> next_sequence = 1;
  const uint32_t sequence = next_sequence++;
  const std::string_view bytes = request.Finish(sequence);
  if (send(fd, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return errno;
  alignas(nlmsghdr) std::array<char, kReplyBytes> buffer;
  while (true) {
    const ssize_t size = recv(fd, buffer.data(), buffer.size(), 0);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return errno;
    auto left = static_cast<uint32_t>(size);
    for (auto* message = reinterpret_cast<nlmsghdr*>(buffer.data()); NLMSG_OK(message, left);
         message = NLMSG_NEXT(message, left)) {
      if (message->nlmsg_seq != sequence) continue;
      if (message->nlmsg_type == NLMSG_DONE) return 0;
      if (message->nlmsg_type == NLMSG_ERROR)
        return -static_cast<nlmsgerr*>(NLMSG_DATA(message))->error;
      const bool asked = message->nlmsg_type == RTM_NEWLINK || message->nlmsg_type == RTM_NEWROUTE;
      if (asked && on_object) on_object(message);
    }
  }
}

Status NetlinkError(int error, std::string_view doing) {
  return Error(Reason::kInternalError, "network: {}: {}", doing, std::strerror(error));
}

ifinfomsg Link(int index = 0, bool up = false) {
  ifinfomsg link{};
  link.ifi_family = AF_UNSPEC;
  link.ifi_index = index;
  link.ifi_flags = up ? IFF_UP : 0;
  link.ifi_change = up ? IFF_UP : 0;
  return link;
}

struct LinkInfo {
  int index = 0;
  std::string name, alias;
  uint8_t operstate = 0;
};

LinkInfo ParseLink(const nlmsghdr* message) {
  const auto* header = static_cast<const ifinfomsg*>(NLMSG_DATA(message));
  LinkInfo info;
  info.index = header->ifi_index;
  auto left = static_cast<int>(IFLA_PAYLOAD(message));
  for (const auto* attribute = IFLA_RTA(header); RTA_OK(attribute, left);
       attribute = RTA_NEXT(attribute, left)) {
    if (attribute->rta_type == IFLA_IFNAME) {
      info.name = static_cast<const char*>(RTA_DATA(attribute));
    } else if (attribute->rta_type == IFLA_IFALIAS) {
      info.alias = static_cast<const char*>(RTA_DATA(attribute));
    } else if (attribute->rta_type == IFLA_OPERSTATE) {
      info.operstate = *static_cast<const uint8_t*>(RTA_DATA(attribute));
    }
  }
  return info;
}

struct RouteInfo {
  Ipv4Prefix to;
  uint8_t type = 0;
  int link = 0;
};

RouteInfo ParseRoute(const nlmsghdr* message) {
  const auto* header = static_cast<const rtmsg*>(NLMSG_DATA(message));
  RouteInfo info;
  info.to.length = header->rtm_dst_len;
  info.type = header->rtm_type;
  auto left = static_cast<int>(RTM_PAYLOAD(message));
  for (const auto* attribute = RTM_RTA(header); RTA_OK(attribute, left);
       attribute = RTA_NEXT(attribute, left)) {
    uint32_t word = 0;
    if (RTA_PAYLOAD(attribute) == sizeof word) std::memcpy(&word, RTA_DATA(attribute), sizeof word);
    if (attribute->rta_type == RTA_DST) info.to.address = Ipv4{be32toh(word)};
    if (attribute->rta_type == RTA_OIF) info.link = static_cast<int>(word);
  }
  return info;
}

Result<LinkInfo> GetLink(int fd, const std::string& name) {
  LinkInfo info;
  NetlinkRequest request(RTM_GETLINK, NLM_F_ACK, Link());
  request.Text(IFLA_IFNAME, name);
  const int error = Talk(fd, request, [&](const nlmsghdr* message) { info = ParseLink(message); });
  if (error != 0) return Error(NetlinkError(error, "find interface " + name));
  return info;
}

// The address 10.42.0.5 always has the link address 0a:58:0a:2a:00:05: who remembers a pod's
// neighbour entry is right about the next pod with that address too.
std::array<uint8_t, 6> LinkAddress(Ipv4 address) {
  const uint32_t v = address.value;
  return {0x0a,
          0x58,
          static_cast<uint8_t>(v >> 24),
          static_cast<uint8_t>(v >> 16),
          static_cast<uint8_t>(v >> 8),
          static_cast<uint8_t>(v)};
}

Status AddAddress(int fd, int index, Ipv4Prefix address, std::string_view interface) {
  ifaddrmsg header{};
  header.ifa_family = AF_INET;
  header.ifa_prefixlen = static_cast<uint8_t>(address.length);
  header.ifa_index = static_cast<uint32_t>(index);
  NetlinkRequest request(RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE | NLM_F_ACK, header);
  request.Address(IFA_LOCAL, address.address).Address(IFA_ADDRESS, address.address);
  const int error = Talk(fd, request);
  if (error == 0) return Status::Ok();
  return NetlinkError(error, fmt::format("give {} the address {}", interface, address.ToString()));
}

struct Route {
  Ipv4Prefix to{{0}, 0};
  std::optional<Ipv4> gateway;
  int link = 0;
  uint8_t type = RTN_UNICAST;
  uint8_t scope = RT_SCOPE_UNIVERSE;
  uint32_t metric = 0;
};

int ChangeRoute(int fd, uint16_t type, uint16_t flags, const Route& route) {
  rtmsg header{};
  header.rtm_family = AF_INET;
  header.rtm_dst_len = static_cast<uint8_t>(route.to.length);
  header.rtm_table = RT_TABLE_MAIN;
  header.rtm_protocol = RTPROT_STATIC;
  header.rtm_scope = route.scope;
  header.rtm_type = route.type;
  NetlinkRequest request(type, static_cast<uint16_t>(flags | NLM_F_ACK), header);
  if (route.to.length > 0) request.Address(RTA_DST, route.to.Network());
  if (route.gateway) request.Address(RTA_GATEWAY, *route.gateway);
  if (route.link != 0) request.Number(RTA_OIF, static_cast<uint32_t>(route.link));
  if (route.metric != 0) request.Number(RTA_PRIORITY, route.metric);
  return Talk(fd, request);
}

Status EnsureRoute(int fd, const Route& route) {
  const int error = ChangeRoute(fd, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, route);
  if (error == 0 || error == EEXIST) return Status::Ok();
  return NetlinkError(error, "add a route to " + route.to.ToString());
}

int OpenSocket() { return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE); }

// A socket that becomes readable whenever a link changes.
int OpenLinkEvents() {
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = RTMGRP_LINK;
  if (fd >= 0) bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  return fd;
}

// A netlink socket in another network namespace. The thread is there for two system calls only.
Result<int> OpenSocketIn(int netns_fd, int (*open_socket)() = OpenSocket) {
  const UniqueFd here(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  if (here.get() < 0) return Error(NetlinkError(errno, "open the own network namespace"));
  if (setns(netns_fd, CLONE_NEWNET) != 0)
    return Error(NetlinkError(errno, "enter the pod's network namespace"));
  const int socket = open_socket();
  const int error = errno;
  CHECK_MSG(setns(here.get(), CLONE_NEWNET) == 0, "cannot return to the own network namespace");
  if (socket < 0)
    return Error(NetlinkError(error, "open a netlink socket in the pod's network namespace"));
  return socket;
}

Status SetUp(int fd, int index, std::string_view name) {
  NetlinkRequest request(RTM_NEWLINK, NLM_F_ACK, Link(index, true));
  const int error = Talk(fd, request);
  return error == 0 ? Status::Ok() : NetlinkError(error, fmt::format("set {} up", name));
}

constexpr int kLoopbackIndex = 1;  // in every network namespace

// `fd` is a socket in the pod's network namespace.
Status SetUpInside(int fd, const PodAttachment& attachment) {
  RETURN_IF_ERROR(SetUp(fd, kLoopbackIndex, "lo"));
  ASSIGN_OR_RETURN(const LinkInfo link, GetLink(fd, std::string(kPodInterface)));
  const Ipv4Prefix address{attachment.address, attachment.prefix_length};
  RETURN_IF_ERROR(AddAddress(fd, link.index, address, kPodInterface));
  RETURN_IF_ERROR(SetUp(fd, link.index, kPodInterface));
  if (!address.Contains(attachment.gateway)) {
    RETURN_IF_ERROR(EnsureRoute(
        fd, {.to = {attachment.gateway, 32}, .link = link.index, .scope = RT_SCOPE_LINK}));
  }
  return EnsureRoute(fd, {.gateway = attachment.gateway, .link = link.index});
}

// A link works a little after it was set up: a work queue of the kernel opens the bridge's port and
// gives each end its queue. A packet that is sent before is lost, and the pod's first lookup would
// wait a second for the next try. `events` is a socket of OpenLinkEvents() beside `fd`.
Status WaitUntilUp(int fd, int events, const std::string& interface) {
  for (int turn = 0; turn < kMaxLinkEventTurns; ++turn) {
    ASSIGN_OR_RETURN(const LinkInfo link, GetLink(fd, interface));
    if (link.operstate == IF_OPER_UP) return Status::Ok();
    pollfd wait{events, POLLIN, 0};
    poll(&wait, 1, kLinkEventTurnMs);
    std::array<char, 4096> ignored;
    while (recv(events, ignored.data(), ignored.size(), MSG_TRUNC) > 0) {
    }
  }
  LOG_WARN("network: the link is slow to come up interface={}", interface);
  return Status::Ok();
}

// One queue at either end, which is what they would have anyway; but the kernel gets there from one
// for each processor, and waits for an RCU grace period at each end.
int CreatePair(int fd, const PodAttachment& attachment, int bridge) {
  const auto address = LinkAddress(attachment.address);
  const ifinfomsg peer = Link();
  NetlinkRequest request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, Link());
  request.Text(IFLA_IFNAME, attachment.host_interface)
      .Number(IFLA_NUM_TX_QUEUES, 1)
      .Number(IFLA_NUM_RX_QUEUES, 1)
      .Number(IFLA_MASTER, static_cast<uint32_t>(bridge))
      .Begin(IFLA_LINKINFO)
      .Text(IFLA_INFO_KIND, "veth")
      .Begin(IFLA_INFO_DATA)
      .Begin(VETH_INFO_PEER, &peer, sizeof peer)
      .Text(IFLA_IFNAME, kPodInterface)
      .Number(IFLA_NUM_TX_QUEUES, 1)
      .Number(IFLA_NUM_RX_QUEUES, 1)
      .Bytes(IFLA_ADDRESS, address.data(), address.size())
      .Number(IFLA_NET_NS_FD, static_cast<uint32_t>(attachment.netns_fd))
      .End()
      .End()
      .End();
  return Talk(fd, request);
}

// Lets the bridge send a frame back through the port that it came from. Where br_netfilter is on,
// the bridge itself translates addresses, and a pod that reaches itself through a Service needs it.
Status AllowHairpin(int fd, const LinkInfo& port) {
  const uint8_t on = 1;
  ifinfomsg header = Link(port.index);
  header.ifi_family = AF_BRIDGE;
  NetlinkRequest request(RTM_SETLINK, NLM_F_ACK, header);
  request.Begin(IFLA_PROTINFO | NLA_F_NESTED).Bytes(IFLA_BRPORT_MODE, &on, sizeof on).End();
  const int error = Talk(fd, request);
  return error == 0 ? Status::Ok() : NetlinkError(error, "set up the bridge port " + port.name);
}

// The pod's end comes up first: an end that is up alone has no carrier, and the kernel takes its
// queues down, with another grace period, only to take them up again.
Status ConnectPair(int fd, const PodAttachment& attachment) {
  ASSIGN_OR_RETURN(const LinkInfo port, GetLink(fd, attachment.host_interface));
  RETURN_IF_ERROR(AllowHairpin(fd, port));
  ASSIGN_OR_RETURN(const int inside_fd, OpenSocketIn(attachment.netns_fd));
  const UniqueFd inside(inside_fd);
  RETURN_IF_ERROR(SetUpInside(inside.get(), attachment));
  const UniqueFd events(OpenLinkEvents());
  ASSIGN_OR_RETURN(const int inside_events_fd, OpenSocketIn(attachment.netns_fd, OpenLinkEvents));
  const UniqueFd inside_events(inside_events_fd);
  RETURN_IF_ERROR(SetUp(fd, port.index, port.name));
  RETURN_IF_ERROR(WaitUntilUp(fd, events.get(), port.name));
  RETURN_IF_ERROR(WaitUntilUp(fd, events.get(), attachment.bridge));
  return WaitUntilUp(inside.get(), inside_events.get(), std::string(kPodInterface));
}

}  // namespace

std::string HostInterfaceName(std::string_view pod_uid) {
  return fmt::format("{}{:012x}", kHostInterfacePrefix, Hash64(pod_uid) & 0xFFFF'FFFF'FFFF);
}

std::string LinkAddressText(Ipv4 address) {
  std::string text;
  for (const uint8_t byte : LinkAddress(address))
    text += fmt::format("{}{:02x}", text.empty() ? "" : ":", byte);
  return text;
}

Result<Netlink> Netlink::Open() {
  const int fd = OpenSocket();
  if (fd < 0) return Error(NetlinkError(errno, "open a netlink socket"));
  return Netlink(fd);
}

Netlink::Netlink(Netlink&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Netlink& Netlink::operator=(Netlink&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Netlink::~Netlink() {
  if (fd_ >= 0) close(fd_);
}

Status Netlink::EnsureBridge(const std::string& name, Ipv4Prefix address) {
  // A link address of its own: otherwise the bridge takes that of a port and changes it when pods
  // go.
  const auto link_address = LinkAddress(address.address);
  NetlinkRequest request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, Link(0, true));
  request.Text(IFLA_IFNAME, name)
      .Bytes(IFLA_ADDRESS, link_address.data(), link_address.size())
      .Begin(IFLA_LINKINFO)
      .Text(IFLA_INFO_KIND, "bridge")
      .End();
  const int error = Talk(fd_, request);
  if (error != 0 && error != EEXIST) return NetlinkError(error, "create the bridge " + name);
  ASSIGN_OR_RETURN(const LinkInfo link, GetLink(fd_, name));
  if (error == EEXIST) RETURN_IF_ERROR(SetUp(fd_, link.index, name));
  return AddAddress(fd_, link.index, address, name);
}

Status Netlink::SetAlias(const std::string& interface, std::string_view alias) {
  ASSIGN_OR_RETURN(const LinkInfo link, GetLink(fd_, interface));
  NetlinkRequest request(RTM_NEWLINK, NLM_F_ACK, Link(link.index));
  request.Text(IFLA_IFALIAS, alias);
  const int error = Talk(fd_, request);
  if (error == 0) return Status::Ok();
  return NetlinkError(error, fmt::format("set the alias of {} to {:?}", interface, alias));
}

Result<std::string> Netlink::GetAlias(const std::string& interface) {
  LinkInfo info;
  NetlinkRequest request(RTM_GETLINK, NLM_F_ACK, Link());
  request.Text(IFLA_IFNAME, interface);
  const int error = Talk(fd_, request, [&](const nlmsghdr* message) { info = ParseLink(message); });
  if (error == 0 || error == ENODEV) return info.alias;
  return Error(NetlinkError(error, "read the alias of " + interface));
}

Status Netlink::AttachPod(const PodAttachment& attachment) {
  ASSIGN_OR_RETURN(const LinkInfo bridge, GetLink(fd_, attachment.bridge));
  int error = CreatePair(fd_, attachment, bridge.index);
  if (error == EEXIST) {
    // Left behind by a crash: the pod is ours to connect again.
    RETURN_IF_ERROR(DeleteInterface(attachment.host_interface));
    error = CreatePair(fd_, attachment, bridge.index);
  }
  if (error != 0) return NetlinkError(error, "create the link " + attachment.host_interface);
  Status status = ConnectPair(fd_, attachment);
  if (!status.ok()) {
    const Status undone = DeleteInterface(attachment.host_interface);
    if (!undone.ok()) return status.WithPrefix(undone.message() + "; after: ");
  }
  return status;
}

Status Netlink::SetLoopbackUp(int netns_fd) {
  ASSIGN_OR_RETURN(const int socket, OpenSocketIn(netns_fd));
  const UniqueFd fd(socket);
  return SetUp(fd.get(), kLoopbackIndex, "lo");
}

Status Netlink::EnsureUnreachableRoute(Ipv4Prefix range) {
  return EnsureRoute(fd_, {.to = range, .type = RTN_UNREACHABLE, .metric = kUnreachableMetric});
}

Status Netlink::DeleteUnreachableRoute(Ipv4Prefix range) {
  const int error = ChangeRoute(
      fd_, RTM_DELROUTE, 0, {.to = range, .type = RTN_UNREACHABLE, .metric = kUnreachableMetric});
  if (error == 0 || error == ESRCH) return Status::Ok();
  return NetlinkError(error, "delete the route to " + range.ToString());
}

Status Netlink::EnsureLinkRoute(Ipv4Prefix range, const std::string& interface) {
  ASSIGN_OR_RETURN(const LinkInfo link, GetLink(fd_, interface));
  return EnsureRoute(fd_, {.to = range, .link = link.index, .scope = RT_SCOPE_LINK});
}

Result<std::vector<Ipv4Prefix>> Netlink::ListDestinations(const std::string& except) {
  LinkInfo excepted;
  if (const auto link = GetLink(fd_, except); link) excepted = *link;
  std::vector<Ipv4Prefix> out;
  rtmsg header{};
  header.rtm_family = AF_INET;
  NetlinkRequest request(RTM_GETROUTE, NLM_F_DUMP, header);
  const int error = Talk(fd_, request, [&](const nlmsghdr* message) {
    const RouteInfo route = ParseRoute(message);
    const bool leads_somewhere = route.type == RTN_UNICAST || route.type == RTN_LOCAL;
    const bool is_ours = excepted.index != 0 && route.link == excepted.index;
    if (leads_somewhere && !is_ours) out.push_back(route.to);
  });
  if (error != 0) return Error(NetlinkError(error, "list routes"));
  return out;
}

Result<std::vector<std::string>> Netlink::ListInterfaces(std::string_view name_prefix) {
  std::vector<std::string> names;
  NetlinkRequest request(RTM_GETLINK, NLM_F_DUMP, Link());
  const int error = Talk(fd_, request, [&](const nlmsghdr* message) {
    LinkInfo link = ParseLink(message);
    if (link.name.starts_with(name_prefix)) names.push_back(std::move(link.name));
  });
  if (error != 0) return Error(NetlinkError(error, "list interfaces"));
  return names;
}

Status Netlink::DeleteInterface(const std::string& name) {
  NetlinkRequest request(RTM_DELLINK, NLM_F_ACK, Link());
  request.Text(IFLA_IFNAME, name);
  const int error = Talk(fd_, request);
  if (error == 0 || error == ENODEV) return Status::Ok();
  return NetlinkError(error, "delete interface " + name);
}

}  // namespace muster::agent
