// src/agent/shim/privileges.h
//
// What a container's process may do: root, but with the capabilities that a container runtime gives
// by default and no more, so that it cannot mount, load modules, open raw devices or trace the
// node's processes.
//
// Thread: the child, alone, before exec.

#pragma once

#include <cstdint>

#include "base/status.h"

namespace muster::agent {

// One bit per capability number. CAP_MKNOD is left out of the usual list: the node's disks must
// stay out of reach also where no device cgroup guards them.
uint64_t DefaultCapabilities();

// Reduces all capability sets of the calling process to `allowed`.
Status KeepOnlyCapabilities(uint64_t allowed);
// The calling process has none; a program that it executes has all that it may have again.
Status LayDownCapabilities();
Status ForbidNewPrivileges();

}  // namespace muster::agent
