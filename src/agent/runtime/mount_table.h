// src/agent/runtime/mount_table.h
//
// The mounts of this process' namespace, as the kernel lists them. Reading the list asks no file
// system, so it never waits for a server that is gone.
//
// Thread: any; all but ParseMountInfo() read one small kernel file.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace muster::agent {

// As /proc/self/mountinfo has it. A mount that lies on another comes after it.
struct MountEntry {
  std::string point;         // where
  std::string type, source;  // "nfs4", "server:/export"
};

std::vector<MountEntry> ParseMountInfo(std::string_view mountinfo);
// Those at or below `dir`, none if it is absent. One that several mounts lie on comes as often.
// REQUIRES: `dir` itself is nothing that is mounted from a server.
Result<std::vector<MountEntry>> MountsBelow(const std::string& dir);
// Whether something is mounted on `path`, of which only the way to it is looked at.
Result<bool> IsMountPoint(const std::string& path);

}  // namespace muster::agent
