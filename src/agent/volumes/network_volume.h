// src/agent/volumes/network_volume.h
//
// NetworkVolume: a volume that a server keeps and that is mounted on the node, once for each pod
// that has it. So far NFS.
//
// Thread:  any (pure), but for NotMounted() and MountNetworkVolume(), which block.
// Errors:  in the words of the kubelet's operation_generator.go and mount-utils.

#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "agent/runtime/program.h"
#include "base/status.h"
#include "json/value.h"

namespace muster::agent {

// mount.nfs itself tries for two minutes, as long as the kubelet waits for a pod's volumes. Here it
// is a little more, so that its own words are told.
inline constexpr Duration kMountTimeLimit = seconds(150);
// Below a pod's volumes, where the kubelet has them, too. No volume of a pod has such a name.
inline constexpr std::string_view kNfsFolder = "kubernetes.io~nfs";

struct NetworkVolume {
  std::string shown;   // its name in messages: the PersistentVolume's, else the pod's
  std::string server;  // as the API object names it
  std::string source;  // "server:/path"
  std::string target;  // on the node, below the pod's folder
  std::vector<std::string> options;
  bool operator==(const NetworkVolume&) const = default;
};

// Of an NFSVolumeSource: all but what it is called and where it is mounted. Options as mount(8) has
// them, sorted, every one once, with "ro" if `read_only`.
NetworkVolume NfsVolume(const std::string& server, std::string_view path,
                        std::vector<std::string> options, bool read_only);
// spec.mountOptions, or the annotation that came before it.
std::vector<std::string> MountOptionsOf(const json::Value& persistent_volume);

struct MountTools {
  std::string program;  // mount(8); "": the one in PATH
  std::string refusal;  // why this node mounts none; "": it does
  Duration time_limit = kMountTimeLimit;
};

// Those of `volumes` that are not mounted here. What is mounted already is taken as it is, whoever
// mounted it: an agent that was killed. Asks no server.
Result<std::vector<NetworkVolume>> NotMounted(const std::vector<NetworkVolume>& volumes);
// Ok once it is mounted. Waits for the server at most as long as `tools` say.
Status MountNetworkVolume(const NetworkVolume& volume, const MountTools& tools,
                          const std::atomic<bool>* cancelled);

}  // namespace muster::agent
