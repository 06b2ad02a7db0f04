// src/agent/pod_workers/container_builder.h
//
// From a pod's YAML to what the shim starts: limits, environment, command, mounts, paths.
//
// Thread:     any (pure).
// Errors:     NotFound / Invalid: the container waits with reason CreateContainerConfigError and
// this message.

#pragma once

#include <string>

#include "agent/devices/device_plugin_api.h"
#include "agent/images/image_record.h"
#include "agent/node/driver_files.h"
#include "agent/pod_workers/device_allocator.h"
#include "agent/pod_workers/pod_inputs.h"
#include "agent/shim/container_spec.h"
#include "agent/volumes/volume_plan.h"
#include "base/status.h"
#include "cluster/devices.h"
#include "json/value.h"

namespace muster::agent {

struct ContainerBuildInput {
  const json::Value& pod;
  const PodInputs& inputs;
  const PodFacts& facts;
  const VolumePlan& plan;
  const cluster::AssignedDevices& devices;
  const DeviceAllocator& node_devices;
  const cluster::DeviceLists& gang_devices;     // that its peers have, where they share a sandbox
  const std::vector<std::string>& node_mounts;  // shown read-only, node/node_mounts.h
  const std::vector<DriverFile>& driver_files;  // for what has a GPU and is not of the machine
  const ImageRecord* image;                     // nullptr: the machine itself
  const PluginAllocation& plugins;              // what device plugins give the container
  std::string data_dir;
  int64_t node_memory_bytes = 0;
};

// `arguments` is empty when neither the container nor its image names a program.
Result<ContainerSpec> BuildContainerSpec(const ContainerBuildInput& input,
                                         const json::Value& container, int attempt);

// cpu and memory of the whole pod: limits only if every container has one.
CgroupLimits PodLimits(const json::Value& pod);
// Sum of the containers' memory limits, 0 if one has none: the size of /dev/shm.
int64_t PodMemoryLimit(const json::Value& pod);
int OomScoreAdjust(const json::Value& pod, const json::Value& container, int64_t node_memory_bytes);

std::string PodLogsDir(const std::string& data_dir);
// DIR/logs/pods/<ns>_<name>_<uid>
std::string PodLogDir(const std::string& data_dir, const json::Value& pod);
std::string ContainerLogPath(const std::string& data_dir, const json::Value& pod,
                             const std::string& container, int attempt);

}  // namespace muster::agent
