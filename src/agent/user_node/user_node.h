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

#include "agent/network/dns_server.h"
#include "agent/runtime/unique_fd.h"
#include "base/status.h"

namespace muster::agent {

struct UserNode {
  UniqueFd network;  // the node's network namespace
  DnsSockets dns;    // bound in there

  bool valid() const { return network.valid(); }
};

// The calling process becomes root of the node's user namespace. Forbidden, with the reason and the
// remedy, where the machine gives him none.
Result<UserNode> EnterUserNode(const std::string& data_dir, const DnsEndpoint& dns);
// Ok if there is none.
Status EndUserNode(const std::string& data_dir);

}  // namespace muster::agent
