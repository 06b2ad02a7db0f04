// src/agent/pod_workers/listeners.h
//
// Where programs of this machine listen, as the kernel lists it.
//
// Thread: any; MachineListeners() reads a kernel file.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cluster/pod_relations.h"

namespace muster::agent {

// The text of /proc/net/tcp (or tcp6; udp: all that are bound). Addresses of IPv6 alone are left
// out; "::" stands for "0.0.0.0".
std::vector<cluster::HostPort> ParseListeners(std::string_view proc_net, std::string_view protocol);
// None for other protocols than TCP and UDP.
std::vector<cluster::HostPort> MachineListeners(const std::string& protocol);

}  // namespace muster::agent
