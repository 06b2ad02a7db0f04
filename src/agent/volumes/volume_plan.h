// src/agent/volumes/volume_plan.h
//
// VolumePlan: what must exist for a pod's volumes, and where each then is on the node.
//
//   kind                                       where
//   configMap, secret, downwardAPI, projected  memory of the shim (SandboxVolume), written by it
//   emptyDir, medium Memory                    a tmpfs of the shim
//   emptyDir                                   DIR/pods/<uid>/volumes/<name>
//   hostPath                                   the path itself
//   nfs                                        mounted on
//                                              DIR/pods/<uid>/volumes/kubernetes.io~nfs/<name>
//   claims                                     the path of the PersistentVolume (ClaimVolume), or,
//                                              of one that is NFS, as nfs
//
// Thread:     PlanVolumes and ContainerMounts any (pure); PrepareVolumes blocks (pool).
// Errors:     what a ConfigMap, Secret, key or token is missing for (the pod waits); Invalid for
//             what cannot work.

#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/pod_workers/expansion.h"
#include "agent/pod_workers/pod_inputs.h"
#include "agent/shim/container_spec.h"
#include "agent/volumes/network_volume.h"
#include "agent/volumes/volume_group.h"
#include "base/status.h"
#include "json/value.h"

namespace muster::agent {

// A hostPath of the pod, or what a claim of it led to.
struct HostPathVolume {
  std::string name, path, type;
  std::string shown;   // its name in messages: the PersistentVolume's
  std::string folder;  // one that the node keeps itself (ClaimVolume)
  bool local = false;  // is not made
  bool retain = false;
};

struct VolumePlan {
  json::Value shim_volumes = json::List();     // for the shim's "prepare" and "volumes"
  std::map<std::string, std::string> sources;  // volume name -> path on the node
  std::map<std::string, std::string>
      hidden;  // volume name -> path below the source that is masked (the data folder)
  std::vector<std::string> directories;  // emptyDirs to make, mode 0777
  std::vector<HostPathVolume> host_paths;
  std::vector<NetworkVolume> network_volumes;  // to be mounted
  std::set<std::string> read_only;             // volumes that no mount may write to
  std::optional<VolumeGroup> group;            // of all volumes but hostPaths and those of servers
};

Result<VolumePlan> PlanVolumes(const json::Value& pod, const PodInputs& inputs,
                               const PodFacts& facts, const std::string& pod_dir);

// Some volume shows contents that may change: a configMap, secret, downwardAPI or projected one.
bool HasFiles(const VolumePlan& plan);

// Makes the folders and checks the hostPaths by their type. A hostPath inside `data_dir` is
// refused, but for volumes that the node keeps there itself; one that contains it gets an entry in
// plan.hidden.
Status PrepareVolumes(VolumePlan& plan, const std::string& data_dir);

Result<std::vector<ContainerMount>> ContainerMounts(const json::Value& container,
                                                    const VolumePlan& plan,
                                                    const EnvironmentMap& variables);

}  // namespace muster::agent
