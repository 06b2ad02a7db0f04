#include "agent/network/host_network.h"

#include <fmt/core.h>
#include <unistd.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "agent/network/netlink.h"
#include "agent/network/nft_socket.h"
#include "agent/network/policy_batch.h"
#include "agent/runtime/files.h"
#include "agent/runtime/program.h"
#include "base/log.h"
#include "base/strings.h"

namespace muster::agent {

namespace {

constexpr const char* kIpForwardFile = "/proc/sys/net/ipv4/ip_forward";
constexpr std::string_view kIpForwardKey = "ip_forward=";

// What ip_forward was before us; the first start decides.
Status NoteForwarding(const NodeNetworkConfig& config, std::string_view before) {
  if (config.state_file.empty() || std::filesystem::exists(config.state_file)) return Status::Ok();
  return WriteFileAtomic(config.state_file, fmt::format("{}{}\n", kIpForwardKey, before), 0600);
}

Status EnableForwarding(const NodeNetworkConfig& config) {
  ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(kIpForwardFile));
  const std::string before(Trim(text));
  RETURN_IF_ERROR(NoteForwarding(config, before));
  if (before == "1") return Status::Ok();
  const Status status = WriteFile(kIpForwardFile, "1\n");
  if (status.ok()) return status;
  return status.WithPrefix(
      "pods cannot reach anything without IP forwarding (set net.ipv4.ip_forward=1): ");
}

// What comes from 127.0.0.1 may be translated to a pod. It goes with the bridge.
void AllowLoopbackToPods(const NodeNetworkConfig& config) {
  const std::string file = fmt::format("/proc/sys/net/ipv4/conf/{}/route_localnet", config.bridge);
  const Status status = WriteFile(file, "1\n");
  if (!status.ok())
    LOG_WARN("network: hostPorts are not reached at 127.0.0.1: {}", status.message());
}

// The state file that owns the network of this namespace, if it is another one than ours; else "".
// Without an alias the bridge is of nobody: a start that was cut short, or an earlier version.
Result<std::string> OtherOwner(Netlink& netlink, const NodeNetworkConfig& config) {
  if (config.state_file.empty()) return std::string();
  ASSIGN_OR_RETURN(std::string owner, netlink.GetAlias(config.bridge));
  std::error_code error;
  if (owner.empty() || owner == config.state_file || !std::filesystem::exists(owner, error)) {
    return std::string();
  }
  // The same folder by another path, e.g. through a symbolic link.
  if (std::filesystem::equivalent(owner, config.state_file, error)) return std::string();
  return owner;
}

Status OwnedError(const std::string& owner) {
  const std::string dir = std::filesystem::path(owner).parent_path().parent_path().string();
  return Error(Reason::kAlreadyExists,
               "another muster ({0}) runs its pod network on this machine; stop it with "
               "muster down --data-dir {0}",
               dir);
}

Status RemoveStateFile(const NodeNetworkConfig& config) {
  std::error_code error;
  std::filesystem::remove(config.state_file, error);
  if (!error) return Status::Ok();
  return Error(Reason::kInternalError, "network: remove {}: {}", config.state_file,
               error.message());
}

Status RestoreForwarding(const NodeNetworkConfig& config) {
  if (config.state_file.empty()) return Status::Ok();
  const Result<std::string> text = ReadSmallFile(config.state_file);
  if (!text) return text.error().reason() == Reason::kNotFound ? Status::Ok() : text.error();
  Status status;
  for (const std::string_view line : SplitNonEmpty(*text, '\n')) {
    if (!line.starts_with(kIpForwardKey)) continue;
    const std::string_view before = line.substr(kIpForwardKey.size());
    if (before == "0") status = WriteFile(kIpForwardFile, "0\n");
  }
  return status.ok() ? RemoveStateFile(config) : status;
}

// Where this program lies, also when it was replaced since; "" without /proc.
std::string OwnDirectory() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path().string();
}

constexpr Duration kNftPatience = minutes(1);  // thousands of Services take a second
constexpr size_t kNftMessageBytes = 2000;

Result<ProgramResult> RunNft(std::vector<std::string> arguments, std::string_view input) {
  arguments.insert(arguments.begin(), NftProgram());
  if (arguments.front().empty()) {
    return Error(Reason::kInternalError,
                 "network: the program nft is missing: install the package nftables");
  }
  Result<ProgramResult> result = RunProgram(
      {.arguments = std::move(arguments), .time_limit = kNftPatience, .input = std::string(input)});
  if (!result) return Error(result.error().WithPrefix("network: "));
  return result;
}

Status NftError(const ProgramResult& result) {
  return Error(Reason::kInternalError, "network: nft exited with {}: {}", result.exit_code,
               Trim(std::string_view(result.err).substr(0, kNftMessageBytes)));
}

// The sets and maps that Services (nft_elements.h) and network policies (policy_dataplane.h) fill,
// and where packets meet those of Services.
constexpr std::string_view kServiceRules = R"(  map services {
    type ipv4_addr . inet_proto . inet_service : verdict
  }
  map isolated_in {
    type ipv4_addr : verdict
  }
  map isolated_out {
    type ipv4_addr : verdict
  }
  map nodeports {
    type inet_proto . inet_service : verdict
  }
  map endpoints {
    typeof ip daddr . ip protocol . th dport . numgen random mod 2 : ip daddr . th dport
  }
  map node_endpoints {
    typeof ip protocol . th dport . numgen random mod 2 : ip daddr . th dport
  }
  map hostports {
    type inet_proto . inet_service : ipv4_addr . inet_service
  }
  map host_ip_ports {
    type ipv4_addr . inet_proto . inet_service : ipv4_addr . inet_service
  }
  chain no_endpoint {
    drop
  }
  chain services_and_nodeports {
    ip daddr . ip protocol . th dport vmap @services
    fib daddr type local dnat ip to ip daddr . ip protocol . th dport map @host_ip_ports
    fib daddr type local dnat ip to ip protocol . th dport map @hostports
    ip daddr != 127.0.0.0/8 fib daddr type local ip protocol . th dport vmap @nodeports
  }
  chain prerouting {
    type nat hook prerouting priority dstnat; policy accept;
    jump services_and_nodeports
  }
  chain output {
    type nat hook output priority -100; policy accept;
    jump services_and_nodeports
  }
)";

// A pod that reaches itself through a Service must see another source address than its own: every
// address of the node's pods, paired with itself.
std::string Hairpin(const Ipv4Prefix& node_range) {
  std::string text = "  set hairpin {\n    type ipv4_addr . ipv4_addr\n    elements = {\n";
  for (uint32_t address = node_range.Network().value; address <= node_range.Broadcast().value;
       ++address) {
    const std::string pod = Ipv4{address}.ToString();
    text += fmt::format("      {0} . {0},\n", pod);
  }
  return text + "    }\n  }\n";
}

// Of Services with session affinity.
constexpr std::string_view kAffinityRules = R"(  map client_endpoints {
    typeof ip daddr . ip protocol . th dport . numgen random mod 2 : verdict
  }
  map node_client_endpoints {
    typeof ip protocol . th dport . numgen random mod 2 : verdict
  }
  map affinity {
    type ipv4_addr . inet_proto . inet_service . ipv4_addr : ipv4_addr . inet_service
    flags dynamic, timeout
    size 262144
  }
  map node_affinity {
    type inet_proto . inet_service . ipv4_addr : ipv4_addr . inet_service
    flags dynamic, timeout
    size 262144
  }
  set clients {
    type ipv4_addr . inet_proto . inet_service . ipv4_addr
    flags dynamic, timeout
    size 262144
  }
  set node_clients {
    type inet_proto . inet_service . ipv4_addr
    flags dynamic, timeout
    size 262144
  }
)";

std::string NameOfNetwork(const Ipv4Prefix& range) {
  return Ipv4Prefix{range.Network(), range.length}.ToString();
}

// The mark of the table with these rules: a table of another version or for other ranges has not
// this chain.
std::string LayoutChain(std::string_view rules) {
  return fmt::format("layout_{:016x}", Hash64(rules));
}

std::string RulesWithoutLayout(const NodeNetworkConfig& config) {
  const std::string node = NameOfNetwork(config.node_range);
  const std::string pods = NameOfNetwork(config.pod_range);
  const std::string virtual_ips = NameOfNetwork(config.service_range);
  std::string text =
      std::string(kAffinityRules) + std::string(kServiceRules) + Hairpin(config.node_range);
  // What leaves for an endpoint elsewhere must come back through here, and so must what a program
  // of the node sends to a hostPort at 127.0.0.1.
  text += fmt::format(
      "  chain postrouting {{\n    type nat hook postrouting priority srcnat; policy accept;\n"
      "    ip saddr . ip daddr @hairpin masquerade\n"
      "    ip saddr 127.0.0.0/8 ip daddr {0} masquerade\n"
      "    ip saddr {0} ip daddr != {1} oifname != \"{2}\" masquerade\n"
      "    meta mark & {3:#x} == {3:#x} ip daddr != {0} masquerade\n  }}\n",
      node, pods, config.bridge, kFromOutsideMark);
  // The bridge has route_localnet for those: nobody but the node itself may use such an address.
  text +=
      "  chain loopback {\n    type filter hook prerouting priority raw; policy accept;\n"
      "    iifname != \"lo\" ip daddr 127.0.0.0/8 drop\n"
      "    iifname != \"lo\" ip saddr 127.0.0.0/8 drop\n  }\n";
  // A Service address that was not translated has no endpoint: refused at once instead of silence.
  // TCP by a reset, because connect() keeps an ICMP error for later when it comes back before it
  // sleeps. Before the routing: that would tell pods of a shorter way first, and the kernel sends
  // them no second message at once.
  text += fmt::format(
      "  chain refused {{\n    type filter hook prerouting priority filter; policy accept;\n"
      "    ip daddr {0} meta l4proto tcp reject with tcp reset\n"
      "    ip daddr {0} reject with icmp port-unreachable\n  }}\n",
      virtual_ips);
  text += fmt::format(
      "  chain forward {{\n    type filter hook forward priority filter; policy accept;\n"
      "    iifname \"{0}\" accept\n    oifname \"{0}\" accept\n  }}\n",
      config.bridge);
  // Network policies: of connections that are not accepted yet, after the translation, what goes
  // out of a pod and then what comes into one. The node's own packets do not come by. Nobody is
  // kept from himself.
  text +=
      "  chain policies {\n    type filter hook forward priority filter; policy accept;\n"
      "    ct state established,related accept\n"
      "    ip saddr . ip daddr @hairpin accept\n"
      "    ip saddr vmap @isolated_out\n    ip daddr vmap @isolated_in\n  }\n";
  // Pods talk through the node: telling them a shorter way would lead past the translation.
  text += fmt::format(
      "  chain own_output {{\n    type filter hook output priority filter; policy accept;\n"
      "    ip daddr {0} meta l4proto tcp reject with tcp reset\n"
      "    ip daddr {0} reject with icmp port-unreachable\n"
      "    oifname \"{1}\" icmp type redirect drop\n  }}\n",
      virtual_ips, config.bridge);
  // What listens on the bridge is for pods and the node, wherever the machine is reached from.
  text += fmt::format(
      "  chain input {{\n    type filter hook input priority filter; policy accept;\n"
      "    iifname != {{ \"{}\", \"lo\" }} ip daddr {} drop\n  }}\n",
      config.bridge, config.BridgeAddress().ToString());
  return text;
}

// For a table that replaces another one: whom policies restrict there may have nothing new here,
// until the policies are programmed again.
std::string ClosedRules() {
  auto socket = NftSocket::Open();
  if (!socket) return "";
  std::string text;
  for (const std::string_view map : {kIsolatedIn, kIsolatedOut}) {
    const auto addresses = socket->ListAddresses(map);  // an error: there is no such table
    if (!addresses) continue;
    for (const auto& [address, chain] : *addresses)
      text +=
          fmt::format("add element ip {} {} {{ {} : drop }}\n", kNftTable, map, address.ToString());
  }
  return text;
}

// Kernels without nftables for bridges have none.
void RemoveFence() {
  const Result<ProgramResult> result =
      RunNft({"delete", "table", "bridge", std::string(kNftTable)}, "");
  if (!result) LOG_WARN("network: cleaning up failed error={:?}", result.error().message());
}

// Whether the table that is there is of these rules.
Result<bool> HasRules(const NodeNetworkConfig& config) {
  ASSIGN_OR_RETURN(const ProgramResult result,
                   RunNft({"list", "chain", "ip", std::string(kNftTable),
                           LayoutChain(RulesWithoutLayout(config))},
                          ""));
  return result.exit_code == 0;
}

}  // namespace

std::string FindNft(const std::string& own_directory) {
  for (const std::string_view directory :
       {std::string_view(own_directory), std::string_view("/usr/sbin"), std::string_view("/sbin"),
        std::string_view("/usr/bin"), std::string_view("/usr/local/sbin")}) {
    if (directory.empty()) continue;
    std::string path = fmt::format("{}/nft", directory);
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return std::string();
}

std::string NftProgram() { return FindNft(OwnDirectory()); }

Status ApplyNft(std::string_view rules) {
  ASSIGN_OR_RETURN(const ProgramResult result, RunNft({"-f", "-"}, rules));
  return result.exit_code == 0 ? Status::Ok() : NftError(result);
}

Result<std::string> ListNft() {
  // Without the elements of sets, which may be many.
  ASSIGN_OR_RETURN(ProgramResult result, RunNft({"--terse", "list", "ruleset"}, ""));
  if (result.exit_code != 0) return Error(NftError(result));
  return std::move(result.out);
}

std::string HostRules(const NodeNetworkConfig& config) {
  const std::string rules = RulesWithoutLayout(config);
  // `add` before `delete`: deleting what is not there would fail.
  return fmt::format(
      "add table ip {0}\ndelete table ip {0}\ntable ip {0} {{\n{1}  chain {2} {{ }}\n}}\n",
      kNftTable, rules, LayoutChain(rules));
}

Status EnsureHost(const NodeNetworkConfig& config) {
  if (config.state_file.size() > kMaxInterfaceAliasBytes) {
    return Error(Reason::kInvalid, "network: the path {} has {} bytes, more than {}",
                 config.state_file, config.state_file.size(), kMaxInterfaceAliasBytes);
  }
  ASSIGN_OR_RETURN(Netlink netlink, Netlink::Open());
  ASSIGN_OR_RETURN(const std::string owner, OtherOwner(netlink, config));
  if (!owner.empty()) return OwnedError(owner);
  RETURN_IF_ERROR(EnableForwarding(config));
  RETURN_IF_ERROR(netlink.EnsureUnreachableRoute(config.pod_range));
  RETURN_IF_ERROR(netlink.EnsureUnreachableRoute(config.service_range));
  RETURN_IF_ERROR(
      netlink.EnsureBridge(config.bridge, {config.BridgeAddress(), config.node_range.length}));
  if (!config.state_file.empty())
    RETURN_IF_ERROR(netlink.SetAlias(config.bridge, config.state_file));
  AllowLoopbackToPods(config);
  RETURN_IF_ERROR(netlink.EnsureLinkRoute(config.service_range, config.bridge));
  // After a restart the table of last time still serves the running pods.
  ASSIGN_OR_RETURN(const bool exists, HasRules(config));
  return exists ? Status::Ok() : ApplyNft(HostRules(config) + ClosedRules());
}

// Where frames come into the bridge, before it looks where they go. A pod asks by ARP for the node
// alone.
Status FencePods(const NodeNetworkConfig& config) {
  return ApplyNft(fmt::format(
      "add table bridge {0}\ndelete table bridge {0}\ntable bridge {0} {{\n  chain fence {{\n"
      "    type filter hook prerouting priority -300; policy accept;\n"
      "    iifname \"{1}*\" ether type != arp ether daddr != {2} drop\n  }}\n}}\n",
      kNftTable, kHostInterfacePrefix, LinkAddressText(config.BridgeAddress())));
}

Status RemoveHost(const NodeNetworkConfig& config) {
  Result<Netlink> netlink = Netlink::Open();
  if (!netlink) return netlink.error();
  ASSIGN_OR_RETURN(const std::string owner, OtherOwner(*netlink, config));
  if (!owner.empty()) {
    LOG_INFO("network: left as it is, it belongs to another muster owner={:?}", owner);
    return RemoveStateFile(config);
  }
  // As much as possible, even when one thing fails; the first error is told.
  Status first;
  const auto note = [&](Status status) {
    if (status.ok()) return;
    LOG_WARN("network: cleaning up failed error={:?}", status.message());
    if (first.ok()) first = std::move(status);
  };
  note(ApplyNft(fmt::format("add table ip {0}\ndelete table ip {0}\n", kNftTable)));
  RemoveFence();
  if (const auto links = netlink->ListInterfaces(kHostInterfacePrefix); links) {
    for (const std::string& link : *links) note(netlink->DeleteInterface(link));
  } else {
    note(links.error());
  }
  note(netlink->DeleteInterface(config.bridge));
  note(netlink->DeleteUnreachableRoute(config.pod_range));
  note(netlink->DeleteUnreachableRoute(config.service_range));
  note(RestoreForwarding(config));
  return first;
}

}  // namespace muster::agent
