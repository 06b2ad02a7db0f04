// src/agent/volumes/volume_group.h
//
// VolumeGroup: what securityContext.fsGroup does to a volume: all of it belongs to a group, whose
// members may use it, and new files do, too.
//
// Thread:  SetVolumeGroup blocks (pool); any.
// Errors:  InternalError with the path. Where this machine has no such group (an ordinary user's
//          node without further ids) files keep theirs: all of them are that user's.
// Source:  the kubelet's pkg/volume/volume_linux.go.

#pragma once

#include <optional>
#include <string>

#include <sys/types.h>

#include "base/status.h"
#include "json/value.h"

namespace muster::agent {

struct VolumeGroup {
  gid_t gid = 0;
  bool only_on_mismatch = false;  // not what is inside a root that is as it should be
};

// By the pod's securityContext; nullopt: it asks for none.
std::optional<VolumeGroup> VolumeGroupOf(const json::Value& pod);

// The tree at `path`: group, its right to read (and write, unless `read_only`), and for folders to
// enter and to pass the group on. Links are not followed: a pod may have made them.
Status SetVolumeGroup(const std::string& path, const VolumeGroup& group, bool read_only);

}  // namespace muster::agent
