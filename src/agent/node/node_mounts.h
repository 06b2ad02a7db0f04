// src/agent/node/node_mounts.h
//
// Which of the node's mounts below `/` a container sees. Its root is an overlay over the file
// system of `/` alone, in which other mounts are empty folders. Programs and libraries have to be
// there: what is mounted at or below /usr, and the mount that holds the GPU driver's libraries
// wherever it is (a driver that comes as an image of its own, e.g. below /usr/local/nvidia or
// /opt). They are shown read-only. Data (/data, /mnt, ...) is not: that is what hostPath is for.
//
// Thread: any; NodeProgramMounts reads one small kernel file.
// Limits: the first kMaxNodeMounts.

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::agent {

inline constexpr size_t kMaxNodeMounts = 64;  // shown in a container; those beyond are not

// `mountinfo` as /proc/self/mountinfo has it. Ascending, no one below another. `driver_library` is
// a file with its links resolved, or "".
std::vector<std::string> ProgramMounts(std::string_view mountinfo,
                                       const std::string& driver_library);
std::vector<std::string> NodeProgramMounts(const std::string& driver_library);

}  // namespace muster::agent
