// src/agent/shim/shim_volumes.h
//
// Volumes that live in memory inside the shim's mount namespace: contents (configMap, secret,
// downwardAPI) and memory-backed emptyDirs. No other process sees them and they vanish with the
// shim.
//
// Thread: the shim.

#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "json/value.h"

namespace muster::agent {

Status MountShm(const std::string& path);
// `bytes` 0 leaves the kernel's default, half of the memory.
Status SizeShm(const std::string& path, int64_t bytes);

// [{name, kind: "memory", sizeBytes} | {name, kind: "files", version, files: [{path, mode, data
// (base64)}]}], below POD_DIR/sandbox/volumes; each with "group", a number, if one may use it. May
// be repeated.
Status WriteShimVolumes(const std::string& pod_dir, const json::Value& volumes);

}  // namespace muster::agent
