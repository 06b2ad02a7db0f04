// src/agent/shim/capabilities.h
//
// Which Linux capabilities a container may have: one bit per capability number.
//
// Thread:  any (pure functions).
// Source:  containerd's pkg/oci (the default list, what "ALL" means in which order).

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace muster::agent {

// What a container runtime gives by default. CAP_MKNOD is left out of the usual list: the node's
// disks must stay out of reach also where no device cgroup guards them.
uint64_t DefaultCapabilities();

// What a container may ask for: the default, and to lock its memory. More would lead out of a
// container whose root is the node's.
uint64_t GrantableCapabilities();

// The bit of "NET_RAW" or "CAP_NET_RAW", in any case; 0 if there is no such capability.
uint64_t CapabilityBit(std::string_view name);

// The default with securityContext.capabilities' `add` and `drop`, either of which may say "ALL".
// Of `add` only what is grantable is given. Invalid: a name that no capability has.
Result<uint64_t> ContainerCapabilities(const std::vector<std::string>& add,
                                       const std::vector<std::string>& drop);

}  // namespace muster::agent
