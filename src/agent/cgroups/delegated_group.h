// src/agent/cgroups/delegated_group.h
//
// The part of the cgroup v2 tree that an ordinary user may divide further: what systemd delegates
// to his own manager or to a service of his (Delegate=yes). Found by trying, because what counts is
// what the kernel lets him write.
//
// Life cycle: found once, before the process starts others; DIR/run/cgroup remembers it, because
//             the groups of running pods are there.
// Thread:     any; blocking but quick (kernel files).
// Invariants: a process can go from where we are into the group: the kernel asks for the right to
//             write the common ancestor, which is the group itself.
// Sources:    kernel Documentation/admin-guide/cgroup-v2 ("Delegation"), systemd's
//             CGROUP_DELEGATION.

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "agent/cgroups/cgroups.h"

namespace muster::agent {

// Where the control plane goes when the group that it is in has to be divided.
inline constexpr std::string_view kControlGroup = "muster-up";

struct DelegatedGroup {
  std::string path;  // "" : there is none
  bool memory = false, cpu = false, pids = false;
  bool unified = true;  // false: the machine has version 1, or none
};

// `own_cgroups` is the text of /proc/self/cgroup. The nearest group above the own one that can be
// divided; else the own one, whose processes (we alone) move into a group below it.
DelegatedGroup FindDelegatedGroup(const std::string& unified_root, std::string_view own_cgroups);

// Of this machine. `remembered` is the file that says where it was last time; it is written.
DelegatedGroup FindDelegatedGroup(const std::string& remembered);

}  // namespace muster::agent
