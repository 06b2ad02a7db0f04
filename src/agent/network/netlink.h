// src/agent/network/netlink.h
//
// Netlink: links, addresses and routes, by synchronous rtnetlink requests.
//
// Life cycle: Open() binds a socket in the network namespace of the caller; the object keeps to
//             that namespace.
// Thread:     one at a time. Made for the spawner, which has one thread: AttachPod() enters the
//             pod's network namespace with setns() for a moment, which changes the calling thread
//             only.
// Invariants: Ensure*() and Delete*() may be repeated: what is already so is not an error.
// Cost:       AttachPod() about 1 ms. Deleting a veth blocks for some 18 ms, so pods' links are not
//             deleted one by one: they go with the pod's namespace. DetachPod() is for what a crash
//             left behind.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "agent/network/ipv4.h"
#include "base/status.h"

namespace muster::agent {

inline constexpr size_t kMaxInterfaceNameBytes = 15;    // IFNAMSIZ - 1
inline constexpr size_t kMaxInterfaceAliasBytes = 255;  // IFALIASZ - 1
inline constexpr std::string_view kPodInterface = "eth0";

// How one pod is connected. With prefix_length 32 (recommended) pods reach each other through the
// node's routing and never past it: a reply of a Service endpoint on the same bridge then returns
// through the address translation.
struct PodAttachment {
  int netns_fd = -1;           // the pod's network namespace
  std::string host_interface;  // name of the node's end, e.g. HostInterfaceName(uid)
  std::string bridge;
  Ipv4 address;
  int prefix_length = 32;
  Ipv4 gateway;  // the bridge's address
};

// A name for the node's end of a pod's link: "mup" + 12 hexadecimal digits from the uid. All ours
// start with kHostInterfacePrefix.
inline constexpr std::string_view kHostInterfacePrefix = "mup";
std::string HostInterfaceName(std::string_view pod_uid);

// Of the end with this address, of pods and of the bridge: "0a:58:0a:2a:00:01".
std::string LinkAddressText(Ipv4 address);

class Netlink {
 public:
  static Result<Netlink> Open();
  Netlink(Netlink&& other) noexcept;
  Netlink& operator=(Netlink&& other) noexcept;
  ~Netlink();

  Status EnsureBridge(const std::string& name, Ipv4Prefix address);

  // A note on an interface that everybody in the namespace sees (`ip link show`) and that goes with
  // it. At most kMaxInterfaceAliasBytes. Reading gives "" if there is none, or no such interface.
  Status SetAlias(const std::string& interface, std::string_view alias);
  Result<std::string> GetAlias(const std::string& interface);

  // One veth pair: the far end is eth0 in the pod's namespace with its address, a default route by
  // the gateway, and lo up. After an error the pair is gone again.
  Status AttachPod(const PodAttachment& attachment);
  Status DetachPod(const std::string& host_interface) { return DeleteInterface(host_interface); }

  // In a pod's namespace without a network (only lo), and for tests.
  Status SetLoopbackUp(int netns_fd);

  // "There is nothing there": the last choice of the routing table, so that packets for a pod or
  // Service that does not exist never leave the machine by the default route.
  Status EnsureUnreachableRoute(Ipv4Prefix range);
  Status DeleteUnreachableRoute(Ipv4Prefix range);
  // `range` is on `interface`: makes Service addresses routable for the node's own processes.
  Status EnsureLinkRoute(Ipv4Prefix range, const std::string& interface);

  // Where packets go, by any routing table: networks and own addresses, default routes (length 0)
  // too, but not by way of the interface `except`.
  Result<std::vector<Ipv4Prefix>> ListDestinations(const std::string& except);

  Result<std::vector<std::string>> ListInterfaces(std::string_view name_prefix);
  Status DeleteInterface(const std::string& name);  // ok if absent

 private:
  explicit Netlink(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace muster::agent
