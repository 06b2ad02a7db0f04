// src/agent/volumes/claim_volume.h
//
// ClaimVolume: where the volume of a pod's claim is, found by way of the claim and the
// PersistentVolume that is bound to it.
//
// Thread:  any (values and pure functions).
// Errors:  in the words of the kubelet: its desired_state_of_world_populator.go ("error processing
//          PVC ...") and operation_generator.go ("MountVolume...").

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "json/value.h"

namespace muster::agent {

struct ClaimVolume {
  std::string name;     // in the pod's spec.volumes
  std::string volume;   // the PersistentVolume
  std::string path;     // on the node; of an NFS volume: on its server
  std::string type;     // of a hostPath; "Directory" of a local one
  std::string folder;   // one that the node keeps itself: its name below LocalVolumesDir()
  bool local = false;   // spec.local, else spec.hostPath
  bool retain = false;  // persistentVolumeReclaimPolicy Retain
  bool read_only = false;
  bool one_pod = false;                    // ReadWriteOncePod
  std::string server;                      // of an NFS volume, else ""
  std::vector<std::string> mount_options;  // of one, too
  std::string fault;  // why it cannot be mounted, with the kubelet's prefix; "": it can
  bool operator==(const ClaimVolume&) const = default;
};

json::Value ToJson(const std::vector<ClaimVolume>& volumes);
std::vector<ClaimVolume> ClaimVolumesFromJson(const json::Value& value);

// The claim that a volume of the pod names, or that was made for it; "" if it is not of that kind.
std::string ClaimOf(const json::Value& pod, const json::Value& volume);
// "error processing PVC d/data: ...".
Status ClaimError(const json::Value& pod, const std::string& claim, const std::string& why);
// The name of the PersistentVolume that is bound to the claim.
Result<std::string> VolumeOfClaim(const json::Value& pod, const json::Value& volume,
                                  const json::Value& claim);
// `node`: the Node object; read where the PersistentVolume has a nodeAffinity.
Result<ClaimVolume> ResolveClaim(const json::Value& pod, const json::Value& volume,
                                 const json::Value& claim, const json::Value& persistent_volume,
                                 const json::Value& node);

}  // namespace muster::agent
