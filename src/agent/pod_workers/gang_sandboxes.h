// src/agent/pod_workers/gang_sandboxes.h
//
// GangSandboxes: pods of one gang on this node that share a network namespace and /dev/shm, so that
// NCCL finds its way over NVLink between pods with a GPU each (annotation muster.dev/gang-sandbox:
// shared). They have one address; names, processes and files stay each pod's own.
//
// The kernel keeps a namespace as long as somebody is in it. So there is no keeper: the first pod's
// sandbox makes it, later ones join whichever of the others is alive (spawner/sandbox.h), and it
// goes with the last one, in whatever order they come, restart and end.
//
// Thread:     the loop thread.
// Invariants: a gang has an address as long as it has a member.

#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "agent/network/ip_allocator.h"
#include "base/status.h"
#include "json/value.h"

namespace muster::agent {

// "<namespace>/<pod group>" of a pod that shares; "" for all others: without the annotation or a
// gang, or on the node's own network.
std::string SharedGangOf(const json::Value& pod);

class GangSandboxes {
 public:
  explicit GangSandboxes(IpAllocator& addresses) : addresses_(addresses) {}

  // The gang's address. May be repeated.
  Result<Ipv4> Join(const std::string& gang, const std::string& pod_uid);
  // A member of an earlier run of the agent; the address is the gang's from now on.
  void Adopt(const std::string& gang, const std::string& pod_uid, Ipv4 address);
  // The last member gives the address back. No effect on who is no member.
  void Leave(const std::string& gang, const std::string& pod_uid);
  bool IsMember(const std::string& gang, const std::string& pod_uid) const;
  std::vector<std::string> OtherMembers(const std::string& gang, const std::string& pod_uid) const;

 private:
  struct Gang {
    Ipv4 address;
    std::set<std::string> members;  // pod uids
  };
  IpAllocator& addresses_;
  std::map<std::string, Gang> gangs_;
};

}  // namespace muster::agent
