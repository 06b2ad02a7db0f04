// src/agent/user_node/user_node.h
//
// The node of an ordinary user: a user namespace in which he is root, with a network namespace. The
// pods, the spawner, the bridge and the Service rules are in there, by the same code as root's; the
// control plane is root there, too, but stays in the machine's network, where its listeners are
// reached and it reaches the machine's resolvers and registries (docs/adr/0006).
//
// Life cycle: a tiny process, the holder, keeps the namespaces while the control plane is away. It
//             is found by the ProcessLock that it holds, and ends with `muster down`. When it was
//             killed (with everything, say), the node is as a machine that was switched off: pods
//             that still run have no network any more and are ended.
// Thread:     a process with one thread, before any other is started; blocking.

#pragma once

#include <string>
#include <vector>

#include "agent/cgroups/cgroups.h"
#include "agent/network/dns_server.h"
#include "agent/node/node_limitation.h"
#include "agent/runtime/unique_fd.h"
#include "base/status.h"

namespace muster::agent {

struct UserNode {
  UniqueFd network;  // the node's network namespace
  DnsSockets dns;    // bound in there
  UniqueFd pod_api;  // too (pod_api_socket.h)
  UniqueFd gateway;  // too

  // As Cgroups::At() wants it: "" is the machine's.
  std::string cgroup = {};
  std::vector<NodeLimitation> limitations = {};
  bool plain = false;  // no namespaces: pods are plain processes of the user

  bool valid() const { return network.valid(); }
};

// The calling process becomes root of the node's user namespace. Forbidden, with the reason and the
// remedy, where the machine gives him none.
Result<UserNode> EnterUserNode(const std::string& data_dir, const DnsEndpoint& dns);
// The node where EnterUserNode() was Forbidden, for the reason `why`.
UserNode PlainUserNode(const Status& why);
// Finds out what the user's pods can have: a cgroup for their limits, a way to the outside, which
// is opened. Tells in `node` where to find the one and what is missing.
void EquipUserNode(const std::string& data_dir, UserNode& node);
// Where the pods' groups are: what EquipUserNode() found last.
Cgroups CgroupsOfUserNode(const std::string& data_dir);
// Ok if there is none.
Status EndUserNode(const std::string& data_dir);

}  // namespace muster::agent
