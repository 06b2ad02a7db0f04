// src/agent/shim/launch.h
//
// Starts the first process of a container, and further ones in it (exec). Called by the shim, which
// has one thread.
//
// Thread:     the shim.
// Invariants: LaunchContainer() returns after the program was executed, or with the reason why it
// was not (then no
//             process is left); the caller reaps the process.

#pragma once

#include <string>
#include <vector>

#include <signal.h>
#include <sys/types.h>

#include "agent/runtime/unique_fd.h"
#include "agent/shim/container_spec.h"
#include "agent/shim/rootfs.h"
#include "base/status.h"

namespace muster::agent {

struct Launched {
  pid_t pid = -1;  // in the shim's PID namespace
  UniqueFd pid_fd;
  UniqueFd out, err;  // the read ends; with a terminal `out` is its master and `err` is not valid
};

Result<Launched> LaunchContainer(const ContainerSpec& spec, const RootfsPlace& place,
                                 const Cgroups& cgroups);

struct ExecSpec {
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
  std::string working_dir;
  std::string user;  // as ContainerSpec's
  bool tty = false;
  bool stdin_open = false;
  bool no_new_privileges = false;
  uint64_t capabilities = 0;
  std::vector<int64_t> groups;
  bool only_groups = false;
  std::string cgroup;
  int oom_score_adj = 0;
  bool plain = false;
};

struct ExecLaunched {
  pid_t pid = -1;
  UniqueFd in, out, err;  // our ends; with a terminal only `in`, the master, for both directions
};

// To ExecLaunched::pid: the command and its process group are killed.
inline constexpr int kKillExecSignal = SIGTERM;

// `container_pid` is the container's first process.
Result<ExecLaunched> LaunchExec(const ExecSpec& spec, pid_t container_pid,
                                bool shares_pid_namespace, const Cgroups& cgroups);

}  // namespace muster::agent
