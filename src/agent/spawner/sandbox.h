// src/agent/spawner/sandbox.h
//
// Makes one pod sandbox: its cgroup, its namespaces with the shim in them, and its link.
//
// Thread:     the spawner (one thread; blocking).
// Invariants: after an error nothing of the sandbox is left but the pod's folder.

#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "agent/cgroups/cgroups.h"
#include "agent/network/netlink.h"
#include "base/status.h"
#include "json/value.h"

namespace muster::agent {

struct SandboxRequest {
  std::string uid;
  std::string pod_dir;   // exists
  std::string hostname;  // "" with host_network
  std::string cgroup;    // "muster/pod<uid>"
  CgroupLimits limits;
  bool host_network = false;
  // The spawner's own; not in the message.
  bool user_namespace = false;
  bool plain = false;
  // Pod folders of the other members of its gang: the network namespace and /dev/shm of the first
  // one that lives are joined; if none lives, new ones are made.
  std::vector<std::string> gang = {};
  // Unset address: a network namespace with only lo.
  std::string bridge;
  Ipv4 address;
  Ipv4 gateway;
};

json::Value ToJson(const SandboxRequest& request);
Result<SandboxRequest> SandboxRequestFromJson(const json::Value& value);

inline constexpr Duration kShimEndPatience = milliseconds(500);

// SIGKILL to the pod's shim, and with it to the pod, and to whatever is in its cgroup; then the
// cgroup is removed. Conflict while something is still dying: to be tried again. Ok if there is
// nothing.
Status EndSandbox(const std::string& pod_dir, const std::string& cgroup, const Cgroups& cgroups,
                  bool plain);

// The shim's process id, here. `netlink` may be null for pods without a link. What is left of an
// earlier sandbox of this pod (its spawner, its shim or the agent was killed) is ended first, so a
// request may be repeated.
Result<pid_t> CreateSandbox(const SandboxRequest& request, const Cgroups& cgroups,
                            Netlink* netlink);

}  // namespace muster::agent
