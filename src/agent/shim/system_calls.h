// src/agent/shim/system_calls.h
//
// The system calls that a container may not make although it needs no capability for them: those
// that reach what no namespace divides (keyrings, BPF) and new user namespaces, in which the
// dropped capabilities would come back (a cgroup v1 mount there undoes the container's own limits).
// It is the part of containerd's default profile that matters without it; the rest of that profile
// needs capabilities that a container does not have.
//
// Thread: the child, alone, before exec.

#pragma once

#include "base/status.h"

namespace muster::agent {

// They fail with EPERM; clone3, whose flags a filter cannot see, with ENOSYS, so that libraries use
// clone. REQUIRES: CAP_SYS_ADMIN or no_new_privs.
Status FilterSystemCalls();

}  // namespace muster::agent
