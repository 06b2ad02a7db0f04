// src/agent/shim/shim.h
//
// The shim: one small process per pod. It is the first process of the pod's PID namespace, starts
// and signals the containers, writes their logs, and remembers how they ended. It outlives the
// agent and the spawner; an agent that comes back connects to DIR/pods/<uid>/shim.sock and asks for
// the state.
//
// Life cycle: cloned by the spawner into the pod's namespaces (no exec, so a start costs no dynamic
//             linking). It says that it is set up and waits for the spawner's word that the sandbox
//             is whole; without it (the spawner died) it ends. Later it ends by the request
//             "shutdown". However it ends, the kernel ends everything that still runs in the pod.
// Thread:     one.
// Invariants: an exit is in containers/<name>/<attempt>.exit before anybody is told; the agent may
//             go away at any moment; requests come only through the socket (mode 0600); it holds
//             the ProcessLock shim.lock, so a pod has at most one and whoever needs to can end it.
//
// Requests (JSON, runtime/wire.h), each with "id"; the answer has the same id and "error" or the
// fields named:
//   state            -> prepared, containers: [{name, attempt, running, startedAt, exit?}]
//   prepare {hidden, files, shmBytes, volumes}   the pod's layer, /dev/shm, memory and content
//                                                volumes; nothing starts before
//   volumes {volumes}                            writes changed contents again
//   start {container: ContainerSpec} -> startedAt, or error
//   signal {name, signal}
//   exec {name, exec, ...}           -> descriptors: in, out, err (one with a terminal)
//   killExec {exec}                  its process group gets SIGKILL
//   shutdown
// Events: {"event": "exit", name, attempt, exit}, {"event": "execExit", exec, exitCode}

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "agent/cgroups/cgroups.h"
#include "agent/runtime/unique_fd.h"

namespace muster::agent {

inline constexpr int kMaxShimConnections = 8;
inline constexpr int kMaxExecsPerPod = 64;
// When the node's memory ends, pods go first, then shims: as containerd's.
inline constexpr int kShimOomScore = -998;
inline constexpr size_t kMaxTerminationMessageBytes = 4096;  // the last ones, as upstream
inline constexpr int64_t kMaxLastOutputBytes = 1 << 20;      // read after a container has ended
inline constexpr const char* kShimSocketName = "shim.sock";
inline constexpr const char* kShimLockName = "shim.lock";
inline constexpr std::string_view kShimReady = "ok";  // said by the shim, answered by kShimGo
inline constexpr std::string_view kShimGo = "go";

struct ShimConfig {
  std::string uid;
  std::string pod_dir;   // DIR/pods/<uid>
  std::string hostname;  // "" with the node's network
  bool user_namespace = false;
  bool plain = false;  // no namespaces: containers are processes of the machine
  // The shim of a pod of the same gang, as a pidfd, and its folder: its network namespace and
  // /dev/shm are joined. -1: this pod has its own.
  int peer = -1;
  std::string peer_dir = {};
};

// Says kShimReady, or what failed, to `starter`, a SOCK_SEQPACKET socket; serves once it has heard
// kShimGo. REQUIRES: runs in the pod's namespaces, in a process with one thread.
[[noreturn]] void RunShim(const ShimConfig& config, const Cgroups& cgroups, UniqueFd starter);

// Where things of a pod are.
std::string SandboxLayer(const std::string& pod_dir);  // the pod's overlay layer
std::string SandboxShm(const std::string& pod_dir);
std::string SandboxVolume(const std::string& pod_dir,
                          const std::string& name);  // memory and content volumes
std::string ContainerBase(const std::string& pod_dir, const std::string& container, int attempt);

}  // namespace muster::agent
