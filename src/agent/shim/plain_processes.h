// src/agent/shim/plain_processes.h
//
// The processes of a pod on a node without namespaces. No kernel object holds them together, so
// they carry a mark in their environment, which children inherit: kPodMark=DIR/pods/<uid>:<name>.
// (A program that clears its children's environment lets them escape the end of the pod; the node's
// condition says that pods are not isolated.)
//
// Thread: any; reads /proc.

#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace muster::agent {

inline constexpr const char* kPodMark = "MUSTER_POD";

// What a container's environment is here: the mark, and a home and a TMPDIR in the pod's folder.
std::vector<std::string> PlainEnvironment(std::vector<std::string> environment,
                                          const std::string& pod_dir, const std::string& container);
std::string PlainHome(const std::string& pod_dir);

// SIGKILL to all that have the mark; of one container if that is not "". Conflict while there are
// any: to be tried again.
Status EndPlainProcesses(const std::string& pod_dir, const std::string& container = "");

}  // namespace muster::agent
