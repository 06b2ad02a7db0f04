// src/agent/shim/privileges.h
//
// What a container's process may do: root, but with few capabilities (capabilities.h), so that it
// cannot mount, load modules, open raw devices or trace the node's processes.
//
// Thread: the child, alone, before exec.

#pragma once

#include <cstdint>

#include "base/status.h"

namespace muster::agent {

// The programs that the calling process executes will have none but `allowed`, one bit per
// capability number. Itself it keeps what it has. REQUIRES: CAP_SETPCAP.
Status LimitCapabilities(uint64_t allowed);
// The calling process has `allowed` and no more. REQUIRES: it has those.
Status TakeCapabilities(uint64_t allowed);
// The calling process has none; a program that it executes has all that it may have again.
Status LayDownCapabilities();
Status ForbidNewPrivileges();

}  // namespace muster::agent
