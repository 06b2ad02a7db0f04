// src/agent/node/node_object.h
//
// What this machine is, and the v1 Node object that says so.
//
// Thread:     GatherNodeFacts blocks for a few small files; the rest is pure.

#pragma once

#include <string>
#include <vector>

#include "agent/node/node_limitation.h"
#include "base/time.h"
#include "cluster/devices.h"
#include "json/value.h"

namespace muster::agent {

struct NodeFacts {
  std::string name, address, pod_cidr, version;
  int64_t cpu_count = 1;
  int64_t memory_bytes = 0;
  int64_t storage_bytes = 0;  // of the file system with the data folder
  int max_pods = 110;
  int kubelet_port = 10250;
  std::string machine_id, system_uuid, boot_id, kernel_version, os_image, architecture;
  std::vector<cluster::Device> devices;
  bool devices_simulated = false;
  std::vector<cluster::Device> plugin_devices;  // of other resources, devices/device_plugins.h
  json::Value gpu_labels = json::Obj();         // of real ones
  std::string machine;                          // DMI product name
  // What is wrong with the GPUs, as reason and message of AcceleratedHardwareReady=False; "": they
  // are all fine.
  std::string gpu_fault_reason, gpu_fault_message;
  // Why the node cannot run pods, as reason and message of Ready=False; "": it can.
  std::string fault_reason, fault_message;
  bool disk_pressure = false;
  std::vector<NodeLimitation> limitations;  // conditions that are True
  std::string local_volumes;  // where volumes of muster.dev/local-path are; "": it keeps none
};

NodeFacts GatherNodeFacts(const std::string& data_dir);
// The address that packets to the outside carry; "" without a default route. Sends nothing.
std::string DefaultRouteAddress();

// N devices of one model: "GPU-sim-0", ...
std::vector<cluster::Device> SimulatedDevices(int count, const std::string& model);

json::Value NodeCapacity(const NodeFacts& facts);
json::Value NodeAllocatable(const NodeFacts& facts);  // without unhealthy devices
// Labels and annotations that are ours; others' are never touched.
json::Value NodeLabels(const NodeFacts& facts);
json::Value NodeAnnotations(const NodeFacts& facts);
// Labels that are ours and that a node without GPUs must not have.
std::vector<std::string_view> GpuLabelNames();
// `before` is the present status (null at first): transition times are kept.
json::Value NodeStatus(const NodeFacts& facts, const json::Value& before, Time now);
json::Value NewNode(const NodeFacts& facts, Time now);
json::Value NewLease(const std::string& node, const std::string& node_uid, Time now);

}  // namespace muster::agent
