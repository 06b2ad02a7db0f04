// src/agent/pod_workers/device_allocator.h
//
// DeviceAllocator: which device of this node belongs to which pod. The scheduler names them in the
// annotation muster.dev/assigned-devices; a pod that another scheduler bound without it gets free
// ones here.
//
// Thread:     the loop thread.
// Invariants: a device has at most one owner.

#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "cluster/devices.h"
#include "json/value.h"

namespace muster::agent {

class DeviceAllocator {
 public:
  explicit DeviceAllocator(std::vector<cluster::Device> devices) : devices_(std::move(devices)) {}

  // container -> resource -> ids, remembered until Release(). Conflict when a device that the
  // annotation names is unknown or another pod's, or when too few are free.
  Result<cluster::AssignedDevices> Assign(const json::Value& pod);
  void Release(const std::string& pod_uid);
  const std::vector<cluster::Device>& devices() const { return devices_; }

 private:
  Status Take(const std::string& resource, const std::string& id, const std::string& uid);

  std::vector<cluster::Device> devices_;
  std::map<std::pair<std::string, std::string>, std::string> owners_;  // (resource, id) -> pod uid
};

// NVIDIA_VISIBLE_DEVICES: ids joined by commas; "void" when there are none, so that no library
// shows all.
std::string VisibleDevices(const cluster::AssignedDevices& assigned, const std::string& container);

}  // namespace muster::agent
