// src/agent/shim/user_root.h
//
// What a container's `/` is made of in a user namespace. The kernel refuses an overlay over a
// folder that has other file systems below it (they are locked together with it), and so over `/`:
// the root folder is the pod's own layer, and there is an overlay for each folder in it that has
// none (/usr, /etc, ...). Folders that have some, such as /var with /var/lib/lxcfs, are taken apart
// in the same way.
//
// Life cycle: planned once per pod, mounted for each container.
// Thread:     the shim.
// Invariants: other file systems than that of `/` are not shown, as under root's single overlay,
//             but /usr, /etc, /var and /opt may be file systems of their own; hidden folders are
//             neither shown nor taken apart.

#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace muster::agent {

// Each costs some 0.1 ms at every start of a container.
inline constexpr size_t kMaxUserOverlays = 128;  // folders beyond are empty
inline constexpr size_t kMaxCopiedFileBytes =
    1 << 20;  // larger files of a folder taken apart are not shown
// Marks a folder of a layer that hides what is below it; "n" does not.
inline constexpr const char* kUserOpaque = "user.overlay.opaque";

// Absolute paths; a folder stands before what is in it.
struct UserRootPlan {
  std::vector<std::string> overlays;      // folders shown through an overlay
  std::vector<std::string> folders;       // made in the layer: empty, or taken apart
  std::vector<std::string> links, files;  // copied into the layer
};

// Where file systems are mounted: the fifth column of /proc/self/mountinfo, without those below
// `own`, which we mounted ourselves.
std::set<std::string> MountPoints(std::string_view mountinfo, const std::string& own);

// Reads folders below `node_root` ("" for the real one).
UserRootPlan PlanUserRoot(const std::set<std::string>& mount_points,
                          const std::vector<std::string>& hidden, const std::string& node_root);
// Of this machine.
Result<UserRootPlan> PlanUserRoot(const std::string& pod_dir,
                                  const std::vector<std::string>& hidden);

}  // namespace muster::agent
