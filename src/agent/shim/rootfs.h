// src/agent/shim/rootfs.h
//
// What a container sees as its file system: an overlay over an image's files, or over the pod's
// layer over the node's `/`, with its own /proc, /sys, /dev, the pod's /dev/shm and the container's
// volumes; then the old root is gone.
//
// Life cycle: called once in a fresh child that has its own mount namespace (and PID namespace,
// unless shared). Thread:     the child, alone. Invariants: nothing of the node is writable through
// it except volumes that are; volume targets and subPaths are
//             resolved inside the container's root, so that a symbolic link cannot lead out.

#pragma once

#include <string>
#include <vector>

#include "agent/shim/container_spec.h"
#include "base/status.h"

namespace muster::agent {

struct RootfsPlace {
  std::string layer;  // made by BuildPodLayer
  std::string base;   // DIR/pods/<uid>/containers/<name>/<attempt>: upper, work and mount point are
                      // made below it
  std::string shm;    // the pod's /dev/shm
  const Cgroups* cgroups = nullptr;  // the container's group is there, if there are any
  // In a user namespace: UserRootPlan::overlays. Then the layer is the root folder, not the node's.
  std::vector<std::string> overlays;
  bool plain = false;  // there is no root to be made
};

// Builds it and makes it the root of the calling process.
Status EnterRootfs(const ContainerSpec& spec, const RootfsPlace& place);

// Opens `path` (absolute or relative) below `root_fd` as if that were `/`, without leaving it:
// O_PATH. With `create`, missing folders are made; the last component is made as a file if
// `as_file`.
Result<int> OpenInRoot(int root_fd, const std::string& path, bool create, bool as_file);

// Opens what is there, with open(2)'s flags, likewise without leaving the root.
Result<int> OpenForUse(int root_fd, const std::string& path, int flags);

}  // namespace muster::agent
