// src/agent/shim/shim.h
//
// The shim: one small process per pod. It is the first process of the pod's PID namespace, starts
// and signals the containers, writes their logs, and remembers how they ended. It outlives the
// agent and the spawner; an agent that comes back connects to DIR/pods/<uid>/shim.sock and asks for
// the state.
//
// Life cycle: cloned by the spawner into the pod's namespaces (no exec, so a start costs no dynamic
// linking); ends by
//             the request "shutdown", and with it everything that still runs in the pod.
// Thread:     one.
// Invariants: an exit is in containers/<name>/<attempt>.exit before anybody is told; the agent may
// go away at any
//             moment; requests come only through the socket (mode 0600).
//
// Requests (JSON, runtime/wire.h), each with "id"; the answer has the same id and "error" or the
// fields named:
//   state                                   -> containers: [{name, attempt, running, startedAt,
//   exit?}] prepare {hidden, files, shmBytes, volumes}   the pod's layer, its /dev/shm, memory and
//   content volumes volumes {volumes}                       writes changed contents again start
//   {container: ContainerSpec}        -> startedAt, or error signal {name, signal} exec {name,
//   exec, ...}                  -> descriptors: in, out, err (one with a terminal) shutdown
// Events: {"event": "exit", name, attempt, exit}, {"event": "execExit", exec, exitCode}

#pragma once

#include <string>

#include "agent/runtime/unique_fd.h"

namespace muster::agent {

inline constexpr int kMaxShimConnections = 8;
inline constexpr int kMaxExecsPerPod = 64;
inline constexpr size_t kMaxTerminationMessageBytes = 4096;  // as upstream
inline constexpr const char* kShimSocketName = "shim.sock";

struct ShimConfig {
  std::string uid;
  std::string pod_dir;   // DIR/pods/<uid>
  std::string hostname;  // "" with the node's network
};

// Writes "ok", or what failed, to `ready` and serves until it is told to end. REQUIRES: runs in the
// pod's namespaces, in a process with one thread.
[[noreturn]] void RunShim(const ShimConfig& config, UniqueFd ready);

// Where things of a pod are.
std::string SandboxLayer(const std::string& pod_dir);  // the pod's overlay layer
std::string SandboxShm(const std::string& pod_dir);
std::string SandboxVolume(const std::string& pod_dir,
                          const std::string& name);  // memory and content volumes
std::string ContainerBase(const std::string& pod_dir, const std::string& container, int attempt);

}  // namespace muster::agent
